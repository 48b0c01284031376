roofline complexity -m tiny_lm --context-length 16 64 --batch-sizes 1 8 --train
