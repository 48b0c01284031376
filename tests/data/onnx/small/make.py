"""Small networks by the TorchScript exporter: python3 make.py, with PyTorch 1.13 (Debian 12)."""
import math
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")


def attention(q, k, v):
    """As torch.nn.functional.scaled_dot_product_attention(is_causal=True), which 1.13 does not have."""
    t = q.shape[2]
    s = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]))
    return F.softmax(s + torch.full((t, t), float("-inf")).triu(1), -1) @ v


class GptBlock(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.h = h
        s.ln1 = nn.LayerNorm(d)
        s.qkv = nn.Linear(d, 3 * d)
        s.proj = nn.Linear(d, d)
        s.ln2 = nn.LayerNorm(d)
        s.up = nn.Linear(d, 4 * d)
        s.down = nn.Linear(4 * d, d)

    def forward(s, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, s.h, d // s.h).transpose(1, 2) for y in s.qkv(s.ln1(x)).split(d, -1))
        x = x + s.proj(attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        return x + s.down(F.gelu(s.up(s.ln2(x))))


class Gpt(nn.Module):
    def __init__(s, vocab=11, d=8, h=2, ctx=4):
        super().__init__()
        s.tok = nn.Embedding(vocab, d)
        s.pos = nn.Embedding(ctx, d)
        s.block = GptBlock(d, h)
        s.ln = nn.LayerNorm(d)
        s.head = nn.Linear(d, vocab, bias=False)

    def forward(s, idx):
        return s.head(s.ln(s.block(s.tok(idx) + s.pos(torch.arange(idx.shape[1])))))


class Rms(nn.Module):
    def __init__(s, d):
        super().__init__()
        s.w = nn.Parameter(torch.ones(d))

    def forward(s, x):
        return s.w * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)


class LlamaBlock(nn.Module):
    """Grouped-query attention with rotary embeddings, SwiGLU."""

    def __init__(s, d, h, kv):
        super().__init__()
        s.h, s.kv = h, kv
        s.n1, s.n2 = Rms(d), Rms(d)
        s.q, s.o = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        s.k, s.v = (nn.Linear(d, kv * d // h, bias=False) for _ in range(2))
        s.g, s.u = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, 3 * d, bias=False)
        s.down = nn.Linear(3 * d, d, bias=False)

    def rope(s, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def forward(s, x, cos, sin):
        b, t, d = x.shape
        y = s.n1(x)
        q = s.rope(s.q(y).view(b, t, s.h, d // s.h).transpose(1, 2), cos, sin)
        k = s.rope(s.k(y).view(b, t, s.kv, d // s.h).transpose(1, 2), cos, sin)
        v = s.v(y).view(b, t, s.kv, d // s.h).transpose(1, 2)
        k, v = (z[:, :, None].expand(b, s.kv, s.h // s.kv, t, d // s.h).reshape(b, s.h, t, d // s.h)
                for z in (k, v))
        x = x + s.o(attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        y = s.n2(x)
        return x + s.down(F.silu(s.g(y)) * s.u(y))


class Llama(nn.Module):
    def __init__(s, vocab=11, d=8, h=2, kv=1, ctx=4):
        super().__init__()
        s.tok = nn.Embedding(vocab, d)
        s.block = LlamaBlock(d, h, kv)
        s.n = Rms(d)
        s.head = nn.Linear(d, vocab, bias=False)
        f = 1.0 / 10000 ** (torch.arange(0, d // h, 2) / (d // h))
        a = torch.outer(torch.arange(ctx), f)
        a = torch.cat((a, a), -1)
        s.register_buffer("cos", a.cos())
        s.register_buffer("sin", a.sin())

    def forward(s, idx):
        return s.head(s.n(s.block(s.tok(idx), s.cos, s.sin)))


class Cnn(nn.Module):
    def __init__(s, c=4):
        super().__init__()
        s.conv1 = nn.Conv2d(3, c, 3, 2, 1, bias=False)
        s.bn1 = nn.BatchNorm2d(c)
        s.dw = nn.Conv2d(c, c, 3, 1, 1, groups=c)
        s.se = nn.Conv2d(c, c, 1)
        s.fc = nn.Linear(c, 5)

    def forward(s, x):
        x = F.relu6(s.bn1(s.conv1(x)))
        y = F.silu(s.dw(x))
        y = y * torch.sigmoid(s.se(F.adaptive_avg_pool2d(y, 1)))
        x = torch.cat([x + y, F.hardswish(x)], 1)[:, : x.shape[1]]
        x = F.pad(F.gelu(F.max_pool2d(x, 2)), (0, 1, 1, 0))
        x = F.avg_pool2d(x, 3, 1, 1)
        return s.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Mlp(nn.Module):
    def __init__(s):
        super().__init__()
        s.a = nn.Linear(48, 8)
        s.b = nn.Linear(8, 5, bias=False)

    def forward(s, x):
        return s.b(F.gelu(s.a(x.reshape(x.shape[0], -1)), approximate="tanh"))


class Pixels(nn.Module):
    """Classes for every pixel."""

    def __init__(s):
        super().__init__()
        s.c = nn.Conv2d(3, 4, 3, padding=1)
        s.n = nn.LayerNorm(4)
        s.d = nn.Conv2d(4, 6, 1)

    def forward(s, x):
        return s.d(F.mish(s.n(s.c(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)))


def export(name, net, arg, opset=17, dynamic=False, train=False):
    torch.manual_seed(0)
    for p in net.parameters():
        p.data.uniform_(-0.1, 0.1)
    more = {"dynamic_axes": {"input": {0: "batch"}}} if dynamic else {}
    if train:
        more.update(training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    torch.onnx.export(net.train(train), arg, f"{name}.onnx", opset_version=opset,
                      input_names=["input"], output_names=["output"], **more)


image, tokens = torch.randn(1, 3, 8, 8), torch.randint(0, 11, (1, 4))
export("cnn", Cnn(), image)
export("cnn_opset11", Cnn(), image, opset=11)
export("cnn_train", Cnn(), image, train=True)
export("cnn_batch4", Cnn(), image.repeat(4, 1, 1, 1))
export("cnn_dynamic", Cnn(), image, dynamic=True)
export("mlp_dynamic", Mlp(), torch.randn(3, 3, 4, 4), dynamic=True)
export("pixels", Pixels(), image)
export("gpt", Gpt(), tokens)
export("gpt_batch2", Gpt(), tokens.repeat(2, 1))
export("gpt_dynamic", Gpt(), tokens, dynamic=True)
export("llama", Llama(), tokens)
export("llama_batch2", Llama(), tokens.repeat(2, 1))
