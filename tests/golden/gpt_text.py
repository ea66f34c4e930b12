"""Trains a byte-level GPT with PyTorch on Debian's `fortunes` text and prints held-out bits per byte: the oracle of the text task.

usage: gpt_text.py [--steps N] [--lr LR] [--warmup N] [...] > result.json      (progress goes to stderr)

Text      every file of /usr/share/games/fortunes except the index files (*.dat) and the links (*.u8), nothing stripped,
          concatenated in byte order of the file names (`LC_ALL=C ls`), without separators.
Split     the held-out part is the end of the text: bytes [size - floor(share * size), size), share = --held-out (10 %).
Batches   a window of context + 1 bytes starts at word % (train_bytes - context); words come from Philox with the key --seed,
          stream 3,000,000, in order: window b of step s is word s * batch + b.
Held out  consecutive windows of `context` predictions that cover the held-out part once: the first byte is only context, a
          rest shorter than the window is its own window. Bits per byte = total nats / predictions / ln 2, in float64.
Init      GPT-2's: matrices and embeddings normal(0, 0.02), residual projections scaled by 1 / sqrt(2 layers), biases 0, gains 1.
Optimizer AdamW; decay on matrices and embeddings only; gradients clipped to a global norm; linear warm-up, then cosine to
          --min-lr-ratio of the peak at the last step.
"""
import argparse
import json
import math
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import models
import philox

BATCH_STREAM = 3_000_000


def read_text(folder):
    names = sorted((n for n in os.listdir(folder) if not n.endswith((".dat", ".u8"))), key=os.fsencode)
    names = [n for n in names if os.path.isfile(os.path.join(folder, n)) and not os.path.islink(os.path.join(folder, n))]
    if not names:
        sys.exit(f"gpt_text: no text file in {folder}; install the package `fortunes`.")
    text = b"".join(open(os.path.join(folder, n), "rb").read() for n in names)
    return names, np.frombuffer(text, np.uint8).astype(np.int64)


def learning_rate(step, a):
    """Of update `step`, counted from 0: linear warm-up over the first a.warmup updates, then half a cosine."""
    if step < a.warmup:
        return a.lr * (step + 1) / a.warmup
    progress = (step - a.warmup) / max(1, a.steps - a.warmup)
    return a.lr * (a.min_lr_ratio + (1 - a.min_lr_ratio) * 0.5 * (1 + math.cos(math.pi * progress)))


@torch.no_grad()
def bits_per_byte(model, text, context, batch):
    model.eval()
    predictions = len(text) - 1
    full = predictions // context
    nats = 0.0
    x = torch.from_numpy(text[:full * context]).view(full, context)
    y = torch.from_numpy(text[1:full * context + 1]).view(full, context)
    chunks = list(zip(x.split(batch), y.split(batch)))
    if predictions > full * context:
        rest = torch.from_numpy(text[full * context:])
        chunks.append((rest[None, :-1], rest[None, 1:]))
    for cx, cy in chunks:
        nats += F.cross_entropy(model(cx).flatten(0, 1), cy.flatten(), reduction="sum").double().item()
    model.train()
    return nats / predictions / math.log(2)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", default="/usr/share/games/fortunes")
    for flag, default in (("layers", 4), ("width", 256), ("heads", 8), ("context", 256), ("batch-size", 8), ("steps", 2000),
                          ("warmup", 100), ("seed", 1), ("threads", 2), ("eval-every", 0)):
        p.add_argument(f"--{flag}", type=int, default=default, help=f"default {default}")
    for flag, default in (("lr", 2e-3), ("min-lr-ratio", 0.1), ("weight-decay", 0.1), ("beta1", 0.9), ("beta2", 0.95),
                          ("eps", 1e-8), ("clip", 1.0), ("held-out", 0.1)):
        p.add_argument(f"--{flag}", type=float, default=default, help=f"default {default}")
    a = p.parse_args()
    torch.set_num_threads(a.threads)

    names, text = read_text(a.data)
    cut = len(text) - int(len(text) * a.held_out)
    train, held_out = text[:cut], text[cut:]
    print(f"{len(names)} files, {len(text)} bytes, held out {len(held_out)}", file=sys.stderr)

    model = models.Gpt(a.layers, a.width, a.heads, a.context, 256)
    model.init_gpt2(torch.Generator().manual_seed(a.seed))
    matrices = [q for q in model.parameters() if q.dim() > 1]
    others = [q for q in model.parameters() if q.dim() < 2]
    opt = torch.optim.AdamW([dict(params=matrices, weight_decay=a.weight_decay), dict(params=others, weight_decay=0.0)],
                            lr=a.lr, betas=(a.beta1, a.beta2), eps=a.eps)
    starts = philox.integers(a.seed, BATCH_STREAM, [a.steps, a.batch_size], cut - a.context)

    curve, seconds, mean = [], 0.0, None
    for step in range(a.steps):
        begin = time.perf_counter()
        for group in opt.param_groups:
            group["lr"] = learning_rate(step, a)
        window = torch.from_numpy(np.stack([train[s:s + a.context + 1] for s in starts[step]]))
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        if a.clip > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), a.clip)
        opt.step()
        seconds += time.perf_counter() - begin
        mean = loss.item() if mean is None else 0.98 * mean + 0.02 * loss.item()
        if (step + 1) % 100 == 0:
            rate = (step + 1) * a.batch_size * a.context / seconds
            print(f"step {step + 1} train {mean / math.log(2):.3f} bits/byte {rate:.0f} tokens/s {seconds:.0f} s", file=sys.stderr)
        if a.eval_every and (step + 1) % a.eval_every == 0 and step + 1 < a.steps:
            curve.append([step + 1, round(bits_per_byte(model, held_out, a.context, a.batch_size), 4)])
            print(f"step {step + 1} held out {curve[-1][1]} bits/byte", file=sys.stderr)
    final = bits_per_byte(model, held_out, a.context, a.batch_size)
    print(json.dumps(dict(schema_version=1, torch=torch.__version__, settings=vars(a), files=names, bytes=len(text),
                          held_out_bytes=len(held_out), parameters=sum(q.numel() for q in model.parameters()),
                          train_seconds=round(seconds, 1),
                          tokens_per_sec=round(a.steps * a.batch_size * a.context / seconds, 1),
                          held_out_curve=curve, held_out_bits_per_byte=round(final, 5)), indent=1))


if __name__ == "__main__":
    main()
