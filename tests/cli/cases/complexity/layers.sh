roofline complexity -m vgg11 --by layer --format csv --fusion compulsory
