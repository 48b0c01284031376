roofline complexity -m resnet18 --by module --train --columns name flops flops_pct fwd_flops dgrad_flops wgrad_flops
