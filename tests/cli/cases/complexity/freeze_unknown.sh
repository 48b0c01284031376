roofline complexity -m vgg11 --freeze nothing_like_it --train
