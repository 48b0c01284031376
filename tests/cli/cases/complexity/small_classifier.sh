roofline complexity -m resnet18 --image-size 32 --classes 10 --format csv
