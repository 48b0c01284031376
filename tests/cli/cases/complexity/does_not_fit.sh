roofline complexity --models resnet152 --batch-sizes 1000000000
