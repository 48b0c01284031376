roofline complexity -m resnet18 --context-length 64
