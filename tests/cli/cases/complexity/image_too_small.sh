roofline complexity --models vgg16 --image-size 16
