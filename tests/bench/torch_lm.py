"""The language model that the torch engine is compared with, as eager PyTorch: the decoder of
complexity/zoo/decoder.c with the weights, tokens and labels of data/fill.h, in the forms of
--attention: composed (the steps of the CS336 course code), naive (softmax, norm, SiLU and loss are one
operation each) and sdpa (fused attention)."""
import math
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/golden"))
import make_zoo  # the fill

# layers, width, hidden width, heads, vocabulary
SIZES = {"tiny_lm": (2, 64, 192, 4, 256), "S": (12, 768, 3072, 12, 10000), "M": (24, 1024, 4096, 16, 10000)}


class Norm(make_zoo.RMSNorm):
    def __init__(self, width, form):
        super().__init__(width)
        self.composed = form == "composed" or not hasattr(F, "rms_norm")

    def forward(self, x):
        if self.composed:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight
        return F.rms_norm(x, x.shape[-1:], self.weight, 1e-5)


class Attention(nn.Module):
    def __init__(self, width, heads, form):
        super().__init__()
        self.heads, self.form = heads, form
        for name in ("q_proj", "k_proj", "v_proj", "output_proj"):
            setattr(self, name, nn.Linear(width, width, bias=False))

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(-2, -3)

    def attend(self, q, k, v, hidden):
        if self.form == "sdpa":
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
        if self.form == "naive":
            return torch.softmax(scores, -1) @ v
        p = torch.exp(scores - scores.max(-1, keepdim=True).values)
        return p / p.sum(-1, keepdim=True) @ v

    def forward(self, x, tables):
        cos, sin, hidden = tables
        q, k, v = (self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        y = self.attend(rotate(q, cos, sin), rotate(k, cos, sin), v, hidden)
        return self.output_proj(y.transpose(-2, -3).flatten(-2))


def rotate(x, cos, sin):
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class FeedForward(nn.Module):
    def __init__(self, width, hidden, form):
        super().__init__()
        self.w1 = nn.Linear(width, hidden, bias=False)
        self.w2 = nn.Linear(hidden, width, bias=False)
        self.w3 = nn.Linear(width, hidden, bias=False)
        self.composed = form == "composed"

    def forward(self, x):
        gate = self.w1(x)
        gate = gate * torch.sigmoid(gate) if self.composed else F.silu(gate)
        return self.w2(gate * self.w3(x))


class Layer(nn.Module):
    def __init__(self, width, hidden, heads, form):
        super().__init__()
        self.ln1 = Norm(width, form)
        self.attn = Attention(width, heads, form)
        self.ln2 = Norm(width, form)
        self.ffn = FeedForward(width, hidden, form)

    def forward(self, x, tables):
        x = x + self.attn(self.ln1(x), tables)
        return x + self.ffn(self.ln2(x))


class Decoder(nn.Module):
    def __init__(self, name, form, context):
        super().__init__()
        layers, width, hidden, heads, vocabulary = SIZES[name]
        half = width // heads // 2
        angle = torch.arange(context, dtype=torch.float64)[:, None] * 10000.0 ** (
            -torch.arange(half, dtype=torch.float64) / half)
        self.token_embeddings = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, hidden, heads, form) for _ in range(layers))
        self.ln_final = Norm(width, form)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.tables = (angle.cos().float(), angle.sin().float(),
                       torch.ones(context, context, dtype=torch.bool).triu(1))
        self.composed = form == "composed"

    def forward(self, tokens):
        x = self.token_embeddings(tokens)
        for layer in self.layers:
            x = layer(x, self.tables)
        return self.lm_head(self.ln_final(x))

    def loss(self, logits, labels):
        logits = logits.flatten(0, 1)
        if not self.composed:
            return F.cross_entropy(logits, labels)
        moved = logits - logits.max(-1, keepdim=True).values
        log_p = moved - torch.log(torch.exp(moved).sum(-1, keepdim=True))
        return -log_p.gather(-1, labels.unsqueeze(-1)).mean()


def filled(name, form, context, batch):
    """The model with its batch: tokens {batch, context}, labels {batch * context}."""
    model, _ = make_zoo.fill(Decoder(name, form, context))
    vocabulary = SIZES[name][-1]
    tokens = make_zoo.raw(0xFFFFFFFE, batch * context) % vocabulary
    labels = torch.arange(batch * context) * 37 % vocabulary
    return model, torch.from_numpy(tokens.astype("int64")).reshape(batch, context), labels
