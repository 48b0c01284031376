# What is wrong with a request is said before anything is opened, and no file is written.
mkdir -p photos empty/train/cat
roofline run --arch resnet5 --synthetic
roofline run --arch resnet18 --data photos
roofline run --arch resnet18 --data empty
roofline run --arch resnet18 --synthetic --label ../x
roofline run --arch resnet18 --synthetic --env 'My Lab'
roofline run --arch resnet18 --synthetic --in-process --timeout 3
roofline run --arch resnet18 --synthetic --optimizer adamax
ls
