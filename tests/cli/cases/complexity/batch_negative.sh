roofline complexity --batch-sizes=-4
