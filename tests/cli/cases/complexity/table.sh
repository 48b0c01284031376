roofline complexity --models resnet50 vgg16 mobilenet_v2 --batch-sizes 1 32
