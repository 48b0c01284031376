roofline complexity -m vgg11 --checkpoint 1 --train
