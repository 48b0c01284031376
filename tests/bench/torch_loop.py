#!/usr/bin/env python3
"""The training loop that `roofline run --synthetic` is compared with: torchvision's network, mean
cross entropy, SGD with momentum and weight decay, one batch that stays in memory. Prints one line:
the median step in ms, and the versions."""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F
import torchvision

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--arch", required=True)
p.add_argument("--batch-size", type=int, required=True)
p.add_argument("--warmup-iters", type=int, default=3)
p.add_argument("--iters", type=int, default=10)
p.add_argument("--threads", type=int, required=True)
p.add_argument("--channels-last", action="store_true")
a = p.parse_args()

torch.set_num_threads(a.threads)
torch.set_num_interop_threads(1)
torch.manual_seed(0)
model = getattr(torchvision.models, a.arch)(weights=None).train()
images = torch.rand(a.batch_size, 3, 224, 224) * 2 - 1
labels = torch.arange(a.batch_size) * 37 % 1000
if a.channels_last:
    model = model.to(memory_format=torch.channels_last)
    images = images.contiguous(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss


times = []
for i in range(a.warmup_iters + a.iters):
    start = time.perf_counter()
    loss = step()
    times.append(time.perf_counter() - start)
    loss.item()
print("%.3f torch %s torchvision %s" % (1e3 * statistics.median(times[a.warmup_iters:]),
                                        torch.__version__, torchvision.__version__))
