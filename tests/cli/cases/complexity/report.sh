roofline complexity --columns report --batch-sizes 128 --format md
