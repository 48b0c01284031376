roofline complexity -m resnet18 --as flopcounter --format json | sed -n '/"peers"/,$p'
