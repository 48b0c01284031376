roofline complexity -m mobilenet_v2 --by kind --format csv --train -b 2
