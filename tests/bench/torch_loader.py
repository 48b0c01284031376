#!/usr/bin/env python3
"""The loading that ours is compared with: torchvision's ImageFolder and transforms on Pillow, one
thread. A batch per line on standard input, its CPU time in ms on standard output.

usage: torch_loader.py FOLDER BATCH"""
import sys
import time

import torch
import torchvision
from torchvision import transforms

folder, batch = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
torch.manual_seed(0)
images = torchvision.datasets.ImageFolder(folder + "/train", transforms.Compose([
    transforms.RandomResizedCrop(224),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
]))
order = torch.randperm(len(images)).tolist()

print("ready", torchvision.__version__, flush=True)
at = 0
for _ in sys.stdin:
    start = time.process_time()
    torch.utils.data.default_collate([images[order[(at + i) % len(order)]] for i in range(batch)])
    print("%.6f" % (1e3 * (time.process_time() - start)), flush=True)
    at += batch
