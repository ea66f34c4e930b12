"""Writes the golden files: what PyTorch computes for the reference models on portable weights and batches.

usage: make_golden.py [model ...] [--out DIR] [--report]

Every number a reader needs to repeat a run is in the file it writes; README.md explains the fields. `--report` writes no
file: it prints how far correct runs differ from each other and how far some wrong ones are off, as Markdown tables.
"""
import argparse
import json
import math
import os

import numpy as np
import torch
import torch.nn.functional as F

import models
import philox

STEPS = 50
SAMPLES = 16
AUTOCAST_SCALE = 1024.0
BATCH_STREAM, INDEX_STREAM = 1_000_000, 2_000_000

RESNET20 = dict(stem="cifar", widths=[16, 32, 64], blocks=[3, 3, 3], expansion=1, classes=10)
SGD = dict(name="sgd", momentum=0.9, dampening=0.0)
CASES = {
    "mlp": dict(
        seed=101, config=dict(sizes=[784, 512, 512, 10], activation="relu"), classes=10,
        input_shape=[64, 784], optimizer=dict(SGD, lr=0.1, nesterov=False, weight_decay=1e-3)),
    "resnet20": dict(
        seed=1201, config=dict(RESNET20, channels=3), classes=10,
        input_shape=[16, 3, 32, 32], optimizer=dict(SGD, lr=0.01, nesterov=True, weight_decay=5e-4)),
    "resnet20_28": dict(
        seed=2244, config=dict(RESNET20, channels=1), classes=10,
        input_shape=[16, 1, 28, 28], optimizer=dict(SGD, lr=0.01, nesterov=True, weight_decay=5e-4)),
    "resnet50": dict(
        seed=104, config=dict(stem="imagenet", widths=[64, 128, 256, 512], blocks=[3, 4, 6, 3], expansion=4, classes=1000,
                              channels=3), classes=1000,
        input_shape=[4, 3, 64, 64], optimizer=dict(SGD, lr=0.0002, nesterov=True, weight_decay=5e-4)),
    "gpt": dict(
        seed=105, config=dict(layers=2, width=64, heads=4, context=32, vocab=97), classes=97,
        input_shape=[4, 32], optimizer=dict(name="adamw", lr=1e-3, betas=[0.9, 0.95], eps=1e-8, weight_decay=0.1)),
}


RESNET_NORMS = {  # (range of the gains, range of the biases), by whether the stem pools
    False: dict(stem=((0.75, 1.25), (0.0, 1.0)), inner=((0.75, 1.25), (0.0, 1.0)),
                last=((0.0625, 0.1875), (-0.03125, 0.03125)), shortcut=((0.25, 0.5), (0.125, 0.375))),
    True: dict(stem=((0.75, 1.25), (-1.75, -1.25)), inner=((0.75, 1.25), (1.25, 1.75)),
               last=((0.0625, 0.1875), (-0.03125, 0.03125)), shortcut=((0.25, 0.5), (0.375, 0.625))),
}


def build(case):
    kind = models.Gpt if "vocab" in case["config"] else models.ResNet if "stem" in case["config"] else models.Mlp
    return kind(**{k: v for k, v in case["config"].items() if k != "activation"})


def power_of_two(x):
    return 2.0 ** round(math.log2(x))


def value_range(name, shape, model):
    """(lo, hi) of a parameter; hi - lo is a power of two (see philox.uniform).

    Two things keep a run stable enough to compare: each residual branch adds little to its shortcut, and few inputs of a
    ReLU lie so near to zero that rounding decides which side they are on (README.md, "Choice of ranges").
    """
    gain = len(shape) == 1 and name.endswith("weight")
    if isinstance(model, models.ResNet):
        if name == "fc.weight":
            return (-0.125, 0.125) if shape[1] == 64 else (-0.0625, 0.0625)
        if len(shape) == 1 and not name.startswith("fc"):
            kind = "stem" if name.startswith("bn1") else "shortcut" if "downsample" in name else "last" \
                if name.split(".")[2] == f"bn{model.layer1[0].depth}" else "inner"
            return RESNET_NORMS[model.pool][kind][0 if gain else 1]
    if len(shape) == 1:
        return (0.75, 1.25) if gain else (-0.0625, 0.0625)
    if isinstance(model, models.Gpt):
        bound = 2.0**-4 if name.endswith("c_proj.weight") else 2.0**-3
        return -bound, bound
    bound = power_of_two(math.sqrt(6 / math.prod(shape[1:])))   # He et al. 2015, arXiv:1502.01852, uniform form
    return -bound, bound


def parameters(model, seed):
    """Fills the model and returns one record per parameter, in the model's order."""
    records = []
    for k, (name, p) in enumerate(model.named_parameters()):
        shape = list(p.shape)
        lo, hi = value_range(name, shape, model)
        values = philox.uniform(seed, k + 1, shape, lo, hi)
        with torch.no_grad():
            p.copy_(torch.from_numpy(values))
        indexes = list(range(p.numel()))
        if p.numel() > SAMPLES:                             # distinct, in order; the file lists them
            draw = philox.integers(seed, INDEX_STREAM + k, [8 * SAMPLES], p.numel())
            indexes = sorted(list(dict.fromkeys(draw.tolist()))[:SAMPLES])
        records.append(dict(name=name, shape=shape, lo=lo, hi=hi, decay=p.dim() > 1, indexes=indexes,
                            initial_norm=norm(p), initial_first=values.reshape(-1)[:4].tolist()))
    return records


def norm(t):
    return torch.linalg.vector_norm(t.detach().double()).item()


def sample(t, indexes):
    flat = t.detach().contiguous().view(-1)
    return [flat[i].item() for i in indexes]


def batch(case, step):
    """Inputs and labels of a step; image values in [-1, 1), labels and tokens word % classes."""
    seed, stream, shape = case["seed"], BATCH_STREAM + 10 * step, case["input_shape"]
    if "vocab" in case["config"]:
        x = philox.integers(seed, stream, shape, case["classes"])
        y = philox.integers(seed, stream + 1, shape, case["classes"])
    else:
        x = philox.uniform(seed, stream, shape, -1.0, 1.0)
        y = philox.integers(seed, stream + 1, shape[:1], case["classes"])
    return torch.from_numpy(x), torch.from_numpy(y)


def make_optimizer(model, o):
    named = [p for p in model.parameters()]
    decayed = o.get("decay_all", False)
    groups = [dict(params=[p for p in named if decayed or p.dim() > 1], weight_decay=o["weight_decay"]),
              dict(params=[p for p in named if not decayed and p.dim() <= 1], weight_decay=0.0)]
    groups = [g for g in groups if g["params"]]
    if o["name"] == "sgd":
        return torch.optim.SGD(groups, lr=o["lr"], momentum=o["momentum"], dampening=o["dampening"], nesterov=o["nesterov"])
    kind = torch.optim.Adam if o.get("coupled") else torch.optim.AdamW
    return kind(groups, lr=o["lr"], betas=tuple(o["betas"]), eps=o["eps"])


def train(case, dtype, threads=1, channels_last=False, steps=STEPS, optimizer=None, patch=None, autocast=None):
    """One run; returns its parameter records, losses, first gradients and final state.

    With `autocast`, forward runs under torch.autocast in that dtype; f16 scales the loss by AUTOCAST_SCALE.
    """
    torch.set_num_threads(threads)
    model = build(case)
    records = parameters(model, case["seed"])
    model = model.to(dtype).train()
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    if patch:
        patch(model)
    opt = make_optimizer(model, optimizer or case["optimizer"])
    losses, gradients = [], []
    for step in range(steps):
        x, y = batch(case, step)
        if x.is_floating_point():
            x = x.to(dtype)
        if channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        opt.zero_grad()
        with torch.autocast("cpu", dtype=autocast, enabled=autocast is not None):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten())
        scale = AUTOCAST_SCALE if autocast == torch.float16 else 1.0
        (loss * scale).backward()
        if scale != 1.0:
            for p in model.parameters():
                p.grad /= scale
        losses.append(loss.item())
        if step == 0:
            gradients = [p.grad.detach().double().clone() for p in model.parameters()]
        opt.step()
    final = [p.detach().double().clone() for p in model.parameters()]
    buffers = {n: b.detach().double().clone() for n, b in model.named_buffers() if "num_batches" not in n}
    return dict(records=records, losses=losses, gradients=gradients, final=final, buffers=buffers)


def shorten(values, digits):
    return [float(f"{v:.{digits}g}") for v in values]


def agreement(a, b):
    """How far two runs differ: losses relative, gradients and buffers relative to each tensor's largest magnitude."""
    far = lambda x, y: ((x - y).abs().max() / y.abs().max()).item()
    gradients = [far(x, y) for x, y in zip(a["gradients"], b["gradients"])]
    return dict(
        loss=max(abs(x - y) / abs(y) for x, y in zip(a["losses"], b["losses"])), gradient=max(gradients),
        gradient_at=a["records"][gradients.index(max(gradients))]["name"],
        final_norm=max(abs(norm(x) - norm(y)) / norm(y) for x, y in zip(a["final"], b["final"])),
        buffer=max((far(x, b["buffers"][k]) for k, x in a["buffers"].items()), default=0.0))


def golden(name, case):
    """The content of one golden file."""
    single, double = train(case, torch.float32), train(case, torch.float64)
    for i, record in enumerate(single["records"]):
        for key, run, digits in (("f32", single, 9), ("f64", double, 12)):
            g, w = run["gradients"][i], run["final"][i]
            record[f"gradient_{key}"] = dict(
                norm=float(f"{norm(g):.12g}"), max_abs=float(f"{g.abs().max().item():.{digits}g}"),
                values=shorten(sample(g, record["indexes"]), digits))
            record[f"final_{key}"] = dict(
                norm=float(f"{norm(w):.12g}"), values=shorten(sample(w, record["indexes"]), digits))
    buffers = []
    for n, b in single["buffers"].items():
        indexes = np.unique(np.linspace(0, b.numel() - 1, 8).astype(int)).tolist()
        buffers.append(dict(name=n, shape=list(b.shape), indexes=indexes,
                            final_f32=dict(norm=float(f"{norm(b):.12g}"), values=shorten(sample(b, indexes), 9)),
                            final_f64=dict(norm=float(f"{norm(double['buffers'][n]):.12g}"),
                                           values=shorten(sample(double["buffers"][n], indexes), 12))))
    x, y = batch(case, 0)
    return dict(
        schema_version=1, model=name, made_by=f"tests/golden/make_golden.py, PyTorch {torch.__version__.split('+')[0]}, CPU",
        seed=case["seed"], config=case["config"], optimizer=case["optimizer"], steps=STEPS,
        input=dict(shape=case["input_shape"], layout="tokens [B, T]" if "vocab" in case["config"] else
                   "NCHW" if len(case["input_shape"]) == 4 else "[N, features]",
                   **({} if "vocab" in case["config"] else dict(lo=-1.0, hi=1.0)), first=x.reshape(-1)[:4].tolist()),
        labels=dict(shape=list(y.shape), classes=case["classes"], first=y.reshape(-1)[:4].tolist()),
        loss_f32=shorten(single["losses"], 9), loss_f64=shorten(double["losses"], 15),
        autocast=autocast_runs(case, double["losses"]),
        agreement_f32_f64=agreement(single, double), parameters=single["records"], buffers=buffers)


def autocast_runs(case, exact):
    """How far PyTorch's own mixed precision leaves the losses `exact`: the measure for ours."""
    result = {}
    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        losses = train(case, torch.float32, autocast=dtype)["losses"]
        deviations = [abs(x - y) / abs(y) for x, y in zip(losses, exact)]
        result[name] = dict(largest_deviation=float(f"{max(deviations):.3g}"), loss=shorten(losses, 7))
    return result


def dump(path, data):
    """JSON with one parameter or buffer a line, so that a change reads well in a diff."""
    with open(path, "w") as f:
        f.write("{\n")
        for i, (key, value) in enumerate(data.items()):
            if key in ("parameters", "buffers"):
                text = "[\n" + ",\n".join("  " + json.dumps(v, separators=(",", ":")) for v in value) + "\n ]"
            else:
                text = json.dumps(value)
            f.write(f' {json.dumps(key)}: {text}{"," if i + 1 < len(data) else ""}\n')
        f.write("}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="*", help=f"some of: {', '.join(CASES)} (default: all)")
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    for name in args.model or CASES:
        if name not in CASES:
            parser.error(f"unknown model {name}; choose from {', '.join(CASES)}")
        if args.report:
            import report
            report.report(name, CASES[name])
        else:
            data = golden(name, CASES[name])
            dump(os.path.join(args.out, f"{name}.json"), data)
            print(f"wrote {name}.json; f32 against f64: {data['agreement_f32_f64']}", flush=True)


if __name__ == "__main__":
    main()
