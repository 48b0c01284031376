roofline complexity -m resnet18 --fit 24
