roofline complexity -m resnet18 --batch-sizes 1 8 --train --optimizer adamw --precision amp --by kind --format md
