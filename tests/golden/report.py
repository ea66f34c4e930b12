"""How far apart correct runs are, and how far off wrong ones: the evidence behind the tolerances of the golden test."""
import torch
import torch.nn as nn
import torch.nn.functional as F

import make_golden
import models


def set_norms(model, **values):
    for m in model.modules():
        if isinstance(m, (nn.BatchNorm2d, nn.LayerNorm)):
            for k, v in values.items():
                setattr(m, k, v)


def exact_gelu(model):
    for m in model.modules():
        if isinstance(m, models.FeedForward):
            m.forward = lambda x, m=m: m.c_proj(F.gelu(m.c_fc(x)))


def wrong_runs(case):
    o = case["optimizer"]
    yield "learning rate 1 % too high", dict(optimizer=dict(o, lr=o["lr"] * 1.01))
    yield "no weight decay", dict(optimizer=dict(o, weight_decay=0.0))
    yield "decay on gains and biases too", dict(optimizer=dict(o, decay_all=True))
    if o["name"] == "sgd":
        yield "momentum 0.89", dict(optimizer=dict(o, momentum=0.89))
        yield "Nesterov the other way", dict(optimizer=dict(o, nesterov=not o["nesterov"]))
    else:
        yield "beta2 0.96", dict(optimizer=dict(o, betas=[0.9, 0.96]))
        yield "decay as an L2 term (Adam)", dict(optimizer=dict(o, coupled=True))
        yield "exact GELU", dict(patch=exact_gelu)
    if "sizes" not in case["config"]:
        yield "norm eps 2e-5", dict(patch=lambda m: set_norms(m, eps=2e-5))
    if "stem" in case["config"]:
        yield "running momentum 0.11", dict(patch=lambda m: set_norms(m, momentum=0.11))


def report(name, case):
    double, base = make_golden.train(case, torch.float64), make_golden.train(case, torch.float32)
    runs = [("f32 against f64", base, double),
            ("f32, 2 threads against 1", make_golden.train(case, torch.float32, threads=2), base)]
    if len(case["input_shape"]) == 4:
        runs.append(("f32, channels last against contiguous", make_golden.train(case, torch.float32, channels_last=True), base))
        runs.append(("f32, channels last against f64", runs[-1][1], double))
    for text, options in wrong_runs(case):
        runs.append((f"WRONG: {text}", make_golden.train(case, torch.float32, **options), base))
    print(f"\n**{name}** (f64 loss: first {double['losses'][0]:.4f}, last {double['losses'][-1]:.4f}, "
          f"least {min(double['losses']):.4f}, most {max(double['losses']):.4f})\n")
    print("| run | loss, 50 steps | first gradients | final norms | running statistics |\n| --- | --- | --- | --- | --- |")
    for text, a, b in runs:
        gap = make_golden.agreement(a, b)
        at = f" ({gap['gradient_at']})" if gap["gradient"] else ""
        print(f"| {text} | {gap['loss']:.1e} | {gap['gradient']:.1e}{at} | {gap['final_norm']:.1e} | {gap['buffer']:.1e} |", flush=True)
