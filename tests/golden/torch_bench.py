"""Training-step throughput of PyTorch on this CPU in float32 (forward, loss, backward, optimizer step), as JSON.

usage: torch_bench.py [case-substring] [--threads N] [--windows N] [--budget SECONDS] [--compile] > out.json

Each case and memory layout runs in a process of its own; progress goes to stderr. A rate is all samples of a window over
all its time; the median window is reported, and of the layouts the faster one ("best"). A sample of the GPT is one
sequence of 256 tokens.
"""
import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time

GPT = dict(layers=4, width=256, heads=8, context=256, vocab=256)
CIFAR = dict(stem="cifar", expansion=1, classes=10)
CASES = {  # name: (model, its arguments, input shape, classes)
    "resnet18-cifar-b64": ("ResNet", dict(CIFAR, channels=3, widths=[64, 128, 256, 512], blocks=[2] * 4), [64, 3, 32, 32], 10),
    "resnet50-224-b8": ("ResNet", dict(stem="imagenet", expansion=4, classes=1000, channels=3, widths=[64, 128, 256, 512],
                                       blocks=[3, 4, 6, 3]), [8, 3, 224, 224], 1000),
    "resnet20-28-b128": ("ResNet", dict(CIFAR, channels=1, widths=[16, 32, 64], blocks=[3] * 3), [128, 1, 28, 28], 10),
    "mlp-b1024": ("Mlp", dict(sizes=[784, 512, 512, 10]), [1024, 784], 10),
    "mlp-b64": ("Mlp", dict(sizes=[784, 512, 512, 10]), [64, 784], 10),
    "gpt-4x256-b8": ("Gpt", GPT, [8, 256], 256),
}


def measure(name, layout, a):
    import torch
    import torch.nn.functional as F

    import models

    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    kind, arguments, shape, classes = CASES[name]
    model = getattr(models, kind)(**arguments)
    if kind == "Gpt":
        model.init_gpt2()
        x, y = torch.randint(classes, shape), torch.randint(classes, shape)
        opt = torch.optim.AdamW(model.parameters(), 1e-3)
    else:
        x, y = torch.randn(shape), torch.randint(classes, shape[:1])
        opt = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    if layout == "channels_last":
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    forward = torch.compile(model) if a.compile else model

    def step():
        loss = F.cross_entropy(forward(x).flatten(0, -2), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss

    step(), step()
    begin, count = time.perf_counter(), 0
    while count < 2 or time.perf_counter() - begin < 0.4:
        step()
        count += 1
    per_window = max(1, round(a.budget / a.windows * count / (time.perf_counter() - begin)))
    seconds = []
    for _ in range(a.windows):
        begin = time.perf_counter()
        for _ in range(per_window):
            loss = step()
        seconds.append((time.perf_counter() - begin) / per_window)
    middle = statistics.median(seconds)
    record = dict(case=name, layout=layout, compiled=a.compile, threads=a.threads, batch_size=shape[0],
                  samples_per_sec=round(shape[0] / middle, 2), step_ms=round(middle * 1e3, 3),
                  step_ms_min=round(min(seconds) * 1e3, 3), step_ms_max=round(max(seconds) * 1e3, 3), windows=a.windows,
                  steps_per_window=per_window, final_loss=round(loss.item(), 4),
                  peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, torch=torch.__version__)
    if kind == "Gpt":
        record["tokens_per_sec"] = round(shape[0] * shape[1] / middle, 1)
    print(json.dumps(record))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("case", nargs="?", default="", help="only the cases whose name holds this")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--windows", type=int, default=5)
    p.add_argument("--budget", type=float, default=5.0, help="seconds of timed steps for each case and layout")
    p.add_argument("--compile", action="store_true", help="use torch.compile")
    p.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.one:
        return measure(*a.one, a)
    names = [n for n in CASES if a.case in n]
    if not names:
        p.error(f"no case holds '{a.case}'; the cases are {', '.join(CASES)}")
    env = dict(os.environ, OMP_NUM_THREADS=str(a.threads))
    results, failed = [], False
    for name in names:
        layouts = ["channels_last", "contiguous"] if CASES[name][0] == "ResNet" else ["contiguous"]
        records = []
        for layout in layouts:
            command = [sys.executable, os.path.abspath(__file__), "--threads", str(a.threads), "--windows", str(a.windows),
                       "--budget", str(a.budget), "--one", name, layout] + ["--compile"] * a.compile
            run = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True)
            if run.returncode:
                failed = True
                print(f"torch_bench: {name} {layout} ended with {run.returncode}", file=sys.stderr)
                continue
            records.append(json.loads(run.stdout))
            print(json.dumps(records[-1]), file=sys.stderr, flush=True)
        for record in records:
            record["best"] = record["samples_per_sec"] == max(r["samples_per_sec"] for r in records)
        results += records
    with open("/proc/cpuinfo") as f:
        cpu = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.processor())
    print(json.dumps(dict(schema_version=1, cpu=cpu, cores=os.cpu_count(), load_average=os.getloadavg()[0], results=results),
                     indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
