roofline list models --format csv | head -n 1
roofline list models --format json | grep '"resnet50"'
roofline list models | grep '^  vgg16 '
roofline list models --format md | grep '| vgg16 |'
# Parts of names; a registry that was mistyped is not one.
roofline list models wide_ vgg11
roofline list models no_such --format json
roofline list sufraces
