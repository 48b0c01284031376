roofline complexity --models resnet50 resnet5
