#!/usr/bin/env python3
"""The training loop on a GPU that the torch engine is compared with: torchvision's network, mean
cross entropy, SGD with momentum and weight decay, one batch that stays on the device. Nothing waits
within the window; its wall time is from a synchronised device to a synchronised device.

usage: torch_gpu.py MODEL BATCH nchw|nhwc fp32|tf32|amp|bf16 [--graph] [--warmup N] [--iters N]

Prints one line of CSV: images per second, mean ms per step, peak bytes allocated, last loss. With
--graph the whole step is recorded and replayed (not with amp, whose scaler decides on the host).
Exit 77 with the reason where there is no GPU or no torchvision. --device cpu is for trying this out."""
import argparse
import contextlib
import sys
import time


def absent(why):
    print("torch_gpu.py: " + why, file=sys.stderr)
    sys.exit(77)


try:
    import torch
    import torch.nn.functional as F
    import torchvision
except ImportError as error:
    absent("%s; install it into the Python that has PyTorch" % error)

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("batch", type=int)
parser.add_argument("layout", choices=["nchw", "nhwc"])
parser.add_argument("precision", choices=["fp32", "tf32", "amp", "bf16"])
parser.add_argument("--graph", action="store_true")
parser.add_argument("--warmup", type=int, default=10)
parser.add_argument("--iters", type=int, default=100)
parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
args = parser.parse_args()

on_gpu = args.device == "cuda"
if on_gpu and not torch.cuda.is_available():
    absent("PyTorch %s sees no GPU" % torch.__version__)
if args.graph and (args.precision == "amp" or not on_gpu):
    parser.error("--graph goes with fp32, tf32 and bf16 on a GPU")
torch.backends.cuda.matmul.allow_tf32 = args.precision == "tf32"
torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
torch.manual_seed(0)

device = torch.device(args.device)
model = getattr(torchvision.models, args.model)(weights=None).train().to(device)
images = (torch.rand(args.batch, 3, 224, 224) * 2 - 1).to(device)
labels = (torch.arange(args.batch) * 37 % 1000).to(device)
if args.layout == "nhwc":
    model = model.to(memory_format=torch.channels_last)
    images = images.contiguous(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=on_gpu or None
)
autocast = {
    "fp32": contextlib.nullcontext,
    "tf32": contextlib.nullcontext,
    "amp": lambda: torch.autocast(args.device, torch.float16 if on_gpu else torch.bfloat16),
    "bf16": lambda: torch.autocast(args.device, torch.bfloat16, cache_enabled=not args.graph),
}[args.precision]
scaler = torch.amp.GradScaler(args.device, enabled=args.precision == "amp" and on_gpu)


def step():
    optimizer.zero_grad(set_to_none=True)
    with autocast():
        loss = F.cross_entropy(model(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss


def wait():
    if on_gpu:
        torch.cuda.synchronize()


def record():
    """A whole step as a graph, after some on another stream."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step()
    return lambda: (graph.replay(), loss)[1]


work = record() if args.graph else step
for _ in range(args.warmup):
    loss = work()
wait()
if on_gpu:
    torch.cuda.reset_peak_memory_stats()
start = time.perf_counter()
for _ in range(args.iters):
    loss = work()
wait()
wall = time.perf_counter() - start
peak = torch.cuda.max_memory_allocated() if on_gpu else 0
print(
    "%.2f,%.4f,%d,%.6f"
    % (args.iters * args.batch / wall, 1e3 * wall / args.iters, peak, loss.item())
)
