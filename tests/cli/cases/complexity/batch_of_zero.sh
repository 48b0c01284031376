roofline complexity --batch-sizes 16 0
