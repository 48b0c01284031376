roofline run --arch resnet18
