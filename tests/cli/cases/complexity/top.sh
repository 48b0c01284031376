roofline complexity -m resnet50 -b 8 --by layer --top 3 --format csv --train
