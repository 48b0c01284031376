roofline complexity -m resnet18 --train --fit "NVIDIA L444"
