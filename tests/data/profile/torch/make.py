"""Writes the traces *.json.gz of this directory, and prints PyTorch's own FLOPs (PyTorch 2.11.0, one thread)."""

import gzip
import os
import re
import tempfile

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1, groups=2, bias=False)
        self.bn2 = nn.BatchNorm2d(16)
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.relu(self.bn2(self.conv2(x)) + x)
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Block(nn.Module):
    def __init__(self, vocabulary=256, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.emb = nn.Embedding(vocabulary, width)
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.emb(tokens)
        b, t, d = x.shape
        q, k, v = [a.view(b, t, self.heads, d // self.heads).transpose(1, 2) for a in self.qkv(self.ln1(x)).chunk(3, -1)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return self.head(x + self.down(F.gelu(self.up(self.ln2(x)))))


def trace(name, net, x, y, optimizer, shapes=True, steps=3):
    def step():
        optimizer.zero_grad()
        F.cross_entropy(net(x).flatten(0, -2), y.flatten()).backward()
        optimizer.step()

    def ready(p):
        with tempfile.TemporaryDirectory() as place:
            p.export_chrome_trace(os.path.join(place, "t.json"))
            text = open(os.path.join(place, "t.json")).read()
        text = re.sub(r'"traceName": "[^"]*"', f'"traceName": "{name}.json"', text)
        with open(f"{name}.json.gz", "wb") as f:
            f.write(gzip.compress(text.encode(), 9, mtime=0))
        print(name, {e.key: e.flops for e in p.key_averages() if e.flops})

    with profile(activities=[ProfilerActivity.CPU], record_shapes=shapes, with_flops=shapes,
                 schedule=schedule(wait=1, warmup=1, active=steps), on_trace_ready=ready) as p:
        for _ in range(2 + steps):
            step()
            p.step()


torch.manual_seed(0)
torch.set_num_threads(1)
images, classes = torch.randn(8, 3, 32, 32), torch.randint(10, (8,))
tokens, targets = torch.randint(256, (4, 32)), torch.randint(256, (4, 32))
for name, shapes in ("resnet", True), ("resnet_plain", False):
    net = Residual()
    trace(name, net, images, classes, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), shapes)
net = Block()
trace("gpt", net, tokens, targets, torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=True))
net = Block().bfloat16()
trace("gpt_bf16", net, tokens, targets, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), steps=1)
