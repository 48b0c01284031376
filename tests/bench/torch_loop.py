#!/usr/bin/env python3
"""The training loop that the torch engine is compared with: torchvision's network with SGD, momentum
and weight decay, or a language model (torch_lm.py) with AdamW; mean cross entropy, one batch that stays
in memory; forward and loss under autocast where the precision is one of 16 bits.

The first line of its output is "ready", the version and the number of parameters. For each line on
standard input it does a step and prints the times in ms at which forward, backward and update ended,
the CPU times at which they did, and the loss of a language model (nan for other networks, whose
weights differ).

usage: torch_loop.py eager|compile MODEL BATCH nchw|nhwc|composed|naive|sdpa THREADS fp32|bf16 CONTEXT
CONTEXT is the number of tokens per sample; 0: a network for images. "compile" passes the network through
torch.compile."""
import contextlib
import sys
import time

import torch
import torch.nn.functional as F

mode, arch, batch, form, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
context = int(sys.argv[7])
autocast = {
    "fp32": contextlib.nullcontext,
    "bf16": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}[sys.argv[6]]
torch.set_num_interop_threads(1)
torch.manual_seed(0)
# Fused updates where the library has them for the CPU.
fused = {"fused": True} if tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 4) else {}
if context:
    import torch_lm

    model, inputs, labels = torch_lm.filled(arch, form, context, batch)
    loss_of = model.loss
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, **fused)
else:
    import torchvision

    model = getattr(torchvision.models, arch)(weights=None).train()
    inputs = torch.rand(batch, 3, 224, 224) * 2 - 1
    labels = torch.arange(batch) * 37 % 1000
    if form == "nhwc":
        model = model.to(memory_format=torch.channels_last)
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    loss_of = F.cross_entropy
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, **fused)

if mode == "compile":
    model = torch.compile(model)
torch.set_num_threads(threads)  # make_zoo.py has set 1
print("ready", torch.__version__, sum(p.numel() for p in model.parameters()), flush=True)
for _ in sys.stdin:
    marks = [(time.perf_counter(), time.process_time())]
    optimizer.zero_grad(set_to_none=True)
    with autocast():
        loss = loss_of(model(inputs), labels)
    marks.append((time.perf_counter(), time.process_time()))
    loss.backward()
    marks.append((time.perf_counter(), time.process_time()))
    optimizer.step()
    marks.append((time.perf_counter(), time.process_time()))
    times = [1e3 * (mark[k] - marks[0][k]) for k in (0, 1) for mark in marks[1:]]
    print(*("%.6f" % t for t in times), "%.9g" % (loss.item() if context else float("nan")), flush=True)
