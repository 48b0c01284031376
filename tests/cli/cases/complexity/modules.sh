roofline complexity -m resnet18 --by module --fusion fused
