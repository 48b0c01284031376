roofline complexity -m resnet18 --train --fit 8GiB
