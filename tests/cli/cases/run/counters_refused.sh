# An option that would do nothing is wrong usage, and so is one that cannot be.
roofline run --arch resnet18 --synthetic --counter-sets core
roofline run --arch resnet18 --synthetic --backend cpu --counters step --counter-sets core,flops
roofline run --arch resnet18 --synthetic --backend cuda --counters step --counter-sets cores
roofline run --arch resnet18 --synthetic --counters kernel
roofline run --arch resnet18 --synthetic --nvtx everything
echo $?
ls
