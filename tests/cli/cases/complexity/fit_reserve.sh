roofline complexity -m resnet18 --train --fit 8GiB --reserve 1GiB --format csv
roofline complexity -m resnet18 --train --fit 1GiB --reserve 1GiB
