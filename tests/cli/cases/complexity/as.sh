roofline complexity -m resnet18 mobilenet_v2 --as torchvision fvcore deepspeed
