roofline complexity -m resnet18 --train --fit "nvidia l4" --format md
