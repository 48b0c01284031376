# What is written out reads back to the same counts.
roofline -q complexity -m resnet18 --write-net nets --train --format csv > zoo.csv
roofline complexity --net nets/resnet18.json --train --format csv > file.csv
cmp zoo.csv file.csv && ls nets
roofline complexity -m vgg11 --net nets/resnet18.json --format csv | cut -d, -f 1,3
