roofline complexity -m tiny_lm --image-size 64
