roofline complexity -m vgg11 --freeze feature --train
