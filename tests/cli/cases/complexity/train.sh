roofline complexity -m resnet18 -b 4 --train --optimizer adamw --precision amp --format md
