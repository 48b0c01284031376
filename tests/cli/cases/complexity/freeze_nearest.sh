roofline complexity -m resnet18 --freeze conv1 layr1.0 --train
