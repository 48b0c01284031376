# A model that is named twice, or by "all" as well, is one row.
roofline complexity --models resnet18 resnet18,resnet18 --format csv | cut -d, -f 1
roofline complexity --models all resnet50 all --format csv | cut -d, -f 1 | sort | uniq -d
