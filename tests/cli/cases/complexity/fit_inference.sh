roofline complexity -m resnet18 vgg11 --fit 1e9 --precision fp16 --format csv
