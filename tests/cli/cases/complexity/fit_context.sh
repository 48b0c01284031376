# A language model: the largest batch at each context, and the largest context at that batch.
roofline complexity -m tiny_lm --context-length 16 64 --batch-sizes 2 --train --fit 64MiB --format csv
