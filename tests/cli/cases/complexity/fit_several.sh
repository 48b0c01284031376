roofline complexity -m resnet18 vgg11 tiny_lm --train --fit 640MiB --optimizer adamw
