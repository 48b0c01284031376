#!/usr/bin/env python3
"""Reference values of many networks, filled by the formula of data/fill.h: golden/zoo/<file>.json.

    make_zoo.py OUTDIR [FILE...]

Needs torch, torchvision and numpy. A file says of one network, at a small image or context, what
PyTorch computes in float32 and in double: logits in evaluation, logits with statistics of the batch
where it has batch norm, and the l2 of every parameter's gradient of the mean cross entropy in
training mode without dropout and stochastic depth. docs/internals/engines.md tells the rules of comparison.
"""
import inspect
import json
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torchvision.models import swin_transformer

torch.set_num_threads(1)
BATCH = 2


# ---------------------------------------------------------------- the fill
def raw(p, n):
    with np.errstate(over="ignore"):
        z = (np.uint64(p) << np.uint64(32) | np.arange(n, dtype=np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


def uniform(p, n):
    return ((raw(p, n) >> np.uint64(40)).astype(np.float64) / 2**23 - 1).astype(np.float32)


def kind_of(module, leaf):
    if leaf.startswith("running_"):
        return leaf
    if isinstance(module, nn.Conv2d):
        return "weight" if leaf == "weight" else "small"
    if isinstance(module, (nn.Linear, Conv1D)):
        return "weight" if leaf == "weight" else "small"
    if isinstance(module, nn.MultiheadAttention):
        return "weight" if leaf.endswith("weight") else "small"
    if isinstance(module, nn.Embedding):
        return "embedding"
    if isinstance(module, (nn.BatchNorm2d, nn.LayerNorm, RMSNorm)):
        return "scale" if leaf == "weight" else "small"
    return "other"


def value(kind, p, shape):
    u = uniform(p, math.prod(shape))
    tenth = np.float32(0.1)
    if kind == "weight":
        u = u * np.float32(math.sqrt(3.0 / math.prod(shape[1:])))
    elif kind == "embedding":
        u = u * np.float32(0.02 * math.sqrt(3.0))
    elif kind in ("small", "running_mean"):
        u = u * tenth
    elif kind == "scale":
        u = np.float32(1) + u * tenth
    elif kind == "running_var":
        u = np.float32(1) + np.abs(u) * tenth
    else:
        u = u * np.float32(0.02)
    return torch.from_numpy(u.reshape(shape))


def fill(model):
    """Floating tensors of the state_dict in order; a head that is tied owns none, and the table of
    relative coordinates is a constant."""
    modules, position, seen = dict(model.named_modules()), 0, set()
    with torch.no_grad():
        for name, t in model.state_dict().items():
            owner, _, leaf = name.rpartition(".")
            if not t.is_floating_point() or leaf == "relative_coords_table" or t.data_ptr() in seen:
                continue
            seen.add(t.data_ptr())
            t.copy_(value(kind_of(modules[owner], leaf), position, tuple(t.shape)))
            position += 1
    return model, position


# ---------------------------------------------------------------- language models
class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight


class Conv1D(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out))
        self.bias = nn.Parameter(torch.empty(n_out))

    def forward(self, x):
        return x @ self.weight + self.bias


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


def attend(q, k, v):
    t = q.shape[-2]
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    hidden = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
    out = torch.softmax(scores.masked_fill(hidden, -math.inf), -1) @ v
    return out.transpose(-2, -3).flatten(-2)


def rotate(x):
    tokens, half = x.shape[-2], x.shape[-1] // 2
    angle = torch.arange(tokens, dtype=torch.float64)[:, None] * 10000.0 ** (
        -torch.arange(half, dtype=torch.float64) / half)
    c, s = angle.cos().float().to(x.dtype), angle.sin().float().to(x.dtype)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)


class DecoderAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width, bias=False)
        self.output_proj = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = (heads_of(p(x), self.heads) for p in (self.q_proj, self.k_proj, self.v_proj))
        return self.output_proj(attend(rotate(q), rotate(k), v))


class GatedFeedForward(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.w1 = nn.Linear(width, hidden, bias=False)
        self.w2 = nn.Linear(hidden, width, bias=False)
        self.w3 = nn.Linear(width, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class DecoderLayer(nn.Module):
    def __init__(self, width, hidden, heads):
        super().__init__()
        self.ln1 = RMSNorm(width)
        self.attn = DecoderAttention(width, heads)
        self.ln2 = RMSNorm(width)
        self.ffn = GatedFeedForward(width, hidden)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))


class Decoder(nn.Module):
    def __init__(self, vocab, layers, width, hidden, heads):
        super().__init__()
        self.token_embeddings = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(DecoderLayer(width, hidden, heads) for _ in range(layers))
        self.ln_final = RMSNorm(width)
        self.lm_head = nn.Linear(width, vocab, bias=False)

    def forward(self, tokens):
        x = self.token_embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.ln_final(x))


class GPT2Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(width, 3 * width)
        self.c_proj = Conv1D(width, width)

    def forward(self, x):
        return self.c_proj(attend(*(heads_of(p, self.heads) for p in self.c_attn(x).chunk(3, -1))))


class GPT2FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = Conv1D(width, 4 * width)
        self.c_proj = Conv1D(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class GPT2Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = GPT2Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = GPT2FeedForward(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self, vocab, layers=12, width=768, heads=12):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(1024, width)
        self.h = nn.ModuleList(GPT2Layer(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for layer in self.h:
            x = layer(x)
        return self.ln_f(x) @ self.wte.weight.T


def cifar_cnn(classes):
    layers, channels = [], 3
    for out in (32, 64, 128):
        layers += [nn.Conv2d(channels, out, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        channels = out
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 512), nn.ReLU(), nn.Dropout(), nn.Linear(512, 256),
                         nn.ReLU(), nn.Dropout(), nn.Linear(256, classes))


# ---------------------------------------------------------------- which networks
IMAGES = {  # pixels of a side; 100 classes
    "alexnet": 64, "vgg11_bn": 32, "squeezenet1_0": 64, "squeezenet1_1": 64, "densenet121": 64,
    "googlenet": 64, "googlenet_aux": 64, "inception_v3_no_aux": 107, "inception_v3": 299,
    "shufflenet_v2_x1_0": 64, "mnasnet1_0": 64, "mobilenet_v3_small": 64, "mobilenet_v3_large": 64,
    "efficientnet_b0": 64, "efficientnet_v2_s": 64, "regnet_x_400mf": 64, "regnet_y_400mf": 64,
    "convnext_tiny": 64, "resnext50_32x4d": 64, "wide_resnet50_2": 64, "swin_t": 96, "swin_v2_t": 96,
    "vit_b_32": 64, "vit_b_16": 48, "maxvit_t": 224,
    "cifar_cnn": 32, "resnet18": 64, "resnet50": 64, "vgg16": 64, "mobilenet_v2": 64,
}
ATTENTION = {"vit_b_32": ("naive", "composed"), "swin_t": ("composed",), "tiny_lm": ("sdpa", "naive", "composed"),
             "gpt2": ("naive", "composed")}
TEXTS = {  # tokens, vocabulary
    "tiny_lm": (24, 200), "cs336_small": (12, 320), "gpt2": (12, 320),
}
# those whose autocast to bfloat16 is written down too
BF16 = {"cifar_cnn", "resnet18", "resnet50", "vgg16", "mobilenet_v2", "vit_b_32", "swin_t", "tiny_lm", "gpt2"}
AUXILIARY = {"googlenet_aux": 0.3, "inception_v3": 0.4}


def keep_key_bias():
    """Version 2 of Swin clears a copy of the keys' bias in each pass; the zoo's network uses it."""
    function = swin_transformer.shifted_window_attention
    source = inspect.getsource(function)
    clears = "qkv_bias[length : 2 * length].zero_()"
    assert clears in source
    exec(source.replace(clears, "pass"), vars(swin_transformer))


def build(name, size, classes):
    if name == "tiny_lm":
        return Decoder(classes, 2, 64, 192, 4)
    if name == "cs336_small":
        return Decoder(classes, 12, 768, 3072, 12)
    if name == "gpt2":
        return GPT2(classes)
    if name == "cifar_cnn":
        return cifar_cnn(classes)
    options = {"weights": None, "num_classes": classes}
    maker = {"googlenet_aux": "googlenet", "inception_v3_no_aux": "inception_v3"}.get(name, name)
    if maker in ("googlenet", "inception_v3"):
        options.update(aux_logits=name in AUXILIARY, init_weights=False)
    if name.startswith("vit_"):
        options.update(image_size=size)
    return getattr(torchvision.models, maker)(**options)


def without_dropout(model):
    for m in model.modules():
        if isinstance(m, (nn.Dropout, torchvision.ops.StochasticDepth)):
            m.p = 0.0
    return model


def inputs_of(name, size, classes, dtype):
    if name in TEXTS:
        tokens = raw(0xFFFFFFFE, BATCH * size) % np.uint64(classes)
        return torch.from_numpy(tokens.astype(np.int64).reshape(BATCH, size))
    return torch.from_numpy(uniform(0xFFFFFFFF, BATCH * 3 * size * size).reshape(BATCH, 3, size, size)).to(dtype)


def rows_of(out):
    return out.flatten(0, -2)


def labels_of(out):
    return torch.arange(len(out)) * 37 % out.shape[1]


def forward(model, name, x, weight):
    """Logits in rows, and the loss with what auxiliary heads add."""
    out = model(x)
    heads = []
    if isinstance(out, tuple):
        out, heads = out[0], list(out[1:])
    out = rows_of(out)
    loss = F.cross_entropy(out, labels_of(out))
    for head in heads:
        loss = loss + weight * F.cross_entropy(head, labels_of(head))
    return out, loss


def measure(name, size, classes, dtype):
    """@param dtype  bfloat16: float32 under autocast to it"""
    model, tensors = fill(build(name, size, classes))
    cast = torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16)
    dtype = torch.float32 if dtype == torch.bfloat16 else dtype
    model = without_dropout(model).to(dtype)
    x = inputs_of(name, size, classes, dtype)
    result = {"params": sum(p.numel() for p in model.parameters()), "tensors": tensors}
    with torch.no_grad(), cast:
        result["eval"], result["eval_loss"] = forward(model.eval(), name, x, 0)
    model.train()
    with cast:
        result["train"], result["train_loss"] = forward(model, name, x, AUXILIARY.get(name, 0))
    result["train_loss"].backward()
    result["grads"] = [p.grad.double().norm().item() for p in model.parameters()]
    result["statistics"] = any(isinstance(m, nn.BatchNorm2d) for m in model.modules())
    return result


# ---------------------------------------------------------------- files
def number(x):
    return float("%.10g" % torch.as_tensor(x).item())


def section(f32, f64, key, loss):
    a, b = f32[key].detach().double(), f64[key].detach()
    top = b.topk(2, -1).values
    return {
        "logits_first16": [[number(v) for v in row[:16]] for row in b[:4]],
        "sum": number(b.sum()), "l2": number(b.norm()), "argmax": b.argmax(-1)[:4].tolist(),
        "loss": number(f64[loss]), "max_abs_diff_fp32": number((a - b).abs().max()),
        "min_top1_margin": number((top[:, 0] - top[:, 1])[:4].min()),
    }


def bf16_of(b16, f64):
    """What autocast gives, and how far that is from double: of the logits relative to their l2."""
    def one(key, loss):
        a, b = b16[key].detach().double(), f64[key].detach()
        return {"logits_first16": [[number(v) for v in row[:16]] for row in a[:4]], "l2": number(a.norm()),
                "loss": number(b16[loss]), "rel_l2_diff": float("%.3g" % ((a - b).norm() / b.norm()))}
    return {"eval": one("eval", "eval_loss"), "train": one("train", "train_loss"),
            "each": [float("%.7g" % g) for g in b16["grads"]]}


def make(out, name, attention=None):
    size, classes = TEXTS.get(name) or (IMAGES[name], 100)
    f32, f64 = (measure(name, size, classes, d) for d in (torch.float32, torch.float64))
    shape = [BATCH, size] if name in TEXTS else [BATCH, 3, size, size]
    g32, g64 = f32["grads"], f64["grads"]
    r = {"model": name, "batch": BATCH, "input_shape": shape, "logits_shape": list(f64["eval"].shape),
         "params": f64["params"], "filled_tensors": f64["tensors"], "fp64": section(f32, f64, "eval", "eval_loss")}
    if f64["statistics"]:
        r["batch_stats_fp64"] = section(f32, f64, "train", "train_loss")
    r["gradient"] = {
        "auxiliary_weight": AUXILIARY.get(name, 0),
        "loss": number(f64["train_loss"]), "loss_abs_diff_fp32": number(abs(f32["train_loss"] - f64["train_loss"])),
        "each": [float("%.7g" % g) for g in g64],
        "max_rel_diff_fp32": number(max(abs(a - b) / b for a, b in zip(g32, g64) if b > 0.01 * max(g64))),
    }
    if name in BF16:
        r["bf16"] = bf16_of(measure(name, size, classes, torch.bfloat16), f64)
    for file, setting in [(name, None)] + [(name + "_" + a, a) for a in ATTENTION.get(name, ())]:
        if setting:
            r["attention"] = setting
            r.pop("bf16", None)
        with open(os.path.join(out, file + ".json"), "w") as f:
            f.write("{\n " + ",\n ".join('"%s": %s' % (k, json.dumps(v)) for k, v in r.items()) + "\n}\n")
    print("%-20s %9d parameters, logits within %.1e of %.3g, gradients of %.3g within %.1e of each" % (
        name, r["params"], r["fp64"]["max_abs_diff_fp32"], r["fp64"]["l2"], sum(g * g for g in g64) ** 0.5,
        r["gradient"]["max_rel_diff_fp32"]), flush=True)


if __name__ == "__main__":
    keep_key_bias()
    for each in sys.argv[2:] or list(IMAGES) + list(TEXTS):
        make(sys.argv[1], each)
