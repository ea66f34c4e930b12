"""The reference models in plain PyTorch, with the parameter names of torchvision and of Hugging Face GPT-2."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Mlp(nn.Module):
    """Linear layers with ReLU between them.  Names: layers.0.weight, layers.0.bias, layers.1.weight, ..."""

    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


def conv(cin, cout, kernel, stride=1):
    return nn.Conv2d(cin, cout, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    """A residual block: 3x3, 3x3 (expansion 1) or 1x1, 3x3, 1x1 (expansion 4, stride on the 3x3)."""

    def __init__(self, cin, width, stride, expansion):
        super().__init__()
        cout = width * expansion
        if expansion == 1:
            shapes = [(cin, width, 3, stride), (width, width, 3, 1)]
        else:
            shapes = [(cin, width, 1, 1), (width, width, 3, stride), (width, cout, 1, 1)]
        self.depth = len(shapes)
        for i, shape in enumerate(shapes, 1):
            self.add_module(f"conv{i}", conv(*shape))
            self.add_module(f"bn{i}", nn.BatchNorm2d(shape[1]))
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(conv(cin, cout, 1, stride), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = x
        for i in range(1, self.depth + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.depth:
                y = F.relu(y)
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """He et al. 2015.  stem "imagenet": 7x7 stride 2 and max pooling; "cifar": one 3x3."""

    def __init__(self, stem, channels, widths, blocks, expansion, classes):
        super().__init__()
        self.pool = stem == "imagenet"
        self.conv1 = conv(channels, widths[0], 7, 2) if self.pool else conv(channels, widths[0], 3)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.stages = len(widths)
        cin = widths[0]
        for s, (width, count) in enumerate(zip(widths, blocks), 1):
            layer = []
            for b in range(count):
                layer.append(Block(cin, width, 2 if s > 1 and b == 0 else 1, expansion))
                cin = width * expansion
            self.add_module(f"layer{s}", nn.Sequential(*layer))
        self.fc = nn.Linear(cin, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        if self.pool:
            x = F.max_pool2d(x, 3, 2, 1)
        for s in range(1, self.stages + 1):
            x = getattr(self, f"layer{s}")(x)
        return self.fc(x.mean((2, 3)))


class Conv1D(nn.Module):
    """y = x W + b with W [in, out], as the GPT-2 checkpoints store it."""

    def __init__(self, cin, cout):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(cin, cout))
        self.bias = nn.Parameter(torch.zeros(cout))

    def forward(self, x):
        return torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(width, 3 * width)
        self.c_proj = Conv1D(width, width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = Conv1D(width, 4 * width)
        self.c_proj = Conv1D(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = FeedForward(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """GPT-2 (Radford et al. 2019) without dropout; the output projection is the token embedding."""

    def __init__(self, layers, width, heads, context, vocab):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)

    def init_gpt2(self, generator=None):
        """Matrices and embeddings normal(0, 0.02), residual projections scaled by 1 / sqrt(2 layers), biases zero."""
        with torch.no_grad():
            for name, p in self.named_parameters():
                if p.dim() < 2:
                    continue                                # gains stay 1, biases stay 0
                std = 0.02 / math.sqrt(2 * len(self.h)) if name.endswith("c_proj.weight") else 0.02
                p.normal_(0, std, generator=generator)
