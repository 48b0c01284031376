roofline complexity -m resnet18 --train --optimizer adamw --fit 128MiB
