roofline complexity --columns report --batch-sizes 128 --format md
# At another size nothing is compared.
roofline complexity --columns report --models resnet50 --image-size 128 --format csv
