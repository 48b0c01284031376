roofline complexity -m vgg11 -b 3 --input-grad --format json | grep -v '"version"'
