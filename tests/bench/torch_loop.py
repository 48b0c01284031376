#!/usr/bin/env python3
"""The training loop that the torch engine is compared with: torchvision's network, mean cross
entropy, SGD with momentum and weight decay, one batch that stays in memory; forward and loss under
autocast where the precision is one of 16 bits. A step per line on standard input, its time in ms on
standard output.

usage: torch_loop.py MODEL BATCH nchw|nhwc THREADS fp32|bf16"""
import contextlib
import sys
import time

import torch
import torch.nn.functional as F
import torchvision

arch, batch, layout, threads = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
autocast = {
    "fp32": contextlib.nullcontext,
    "bf16": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}[sys.argv[5]]
torch.set_num_threads(threads)
torch.set_num_interop_threads(1)
torch.manual_seed(0)
model = getattr(torchvision.models, arch)(weights=None).train()
images = torch.rand(batch, 3, 224, 224) * 2 - 1
labels = torch.arange(batch) * 37 % 1000
if layout == "nhwc":
    model = model.to(memory_format=torch.channels_last)
    images = images.contiguous(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

print("ready", torch.__version__, flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    with autocast():
        loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    print("%.6f" % (1e3 * (time.perf_counter() - start)), flush=True)
    loss.item()
