roofline complexity -m resnet18 --peaks peaks.json
