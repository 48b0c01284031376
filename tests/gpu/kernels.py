#!/usr/bin/env python3
"""Two kernels whose traffic and FLOPs are known, for ncu: only they are between the profiler's start
and stop.

usage: kernels.py add|product

add: 1 to each of 2^28 floats, 1 GiB read and as much written. product: two matrices of 8192 x 8192
in bf16. Exit 77 where PyTorch sees no GPU."""
import sys

try:
    import torch
except ImportError as error:
    print("kernels.py: %s" % error, file=sys.stderr)
    sys.exit(77)

if len(sys.argv) != 2 or sys.argv[1] not in ("add", "product"):
    print(__doc__, file=sys.stderr)
    sys.exit(2)
if not torch.cuda.is_available():
    print("kernels.py: PyTorch %s sees no GPU" % torch.__version__, file=sys.stderr)
    sys.exit(77)
if sys.argv[1] == "add":
    x = torch.zeros(2**28, device="cuda")
    y = torch.empty_like(x)
    work = lambda: torch.add(x, 1, out=y)
else:
    a = torch.randn(8192, 8192, device="cuda").bfloat16()
    b = torch.randn(8192, 8192, device="cuda").bfloat16()
    work = lambda: a @ b
for _ in range(3):
    work()
torch.cuda.synchronize()
torch.cuda.profiler.start()
work()
torch.cuda.synchronize()
torch.cuda.profiler.stop()
