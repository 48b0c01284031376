roofline list models --format csv | head -n 1
roofline list models --format json | grep '"resnet50"'
roofline list models | grep '^  vgg16 '
roofline list models --format md | grep '| vgg16 |'
