touch here
roofline complexity -m vgg11 --output-dir here/below > /dev/null
