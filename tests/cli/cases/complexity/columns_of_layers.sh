roofline complexity -m resnet18 --by kind --columns name output
