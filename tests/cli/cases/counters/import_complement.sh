# Times of nsys and counts of nvprof go together under one label.
cp "$RFL_TEST_DATA"/profile/s04_nsys_cuda_gpu_kern_sum.csv times.csv
cp "$RFL_TEST_DATA"/profile/s05_nvprof_metrics.csv counts.csv
roofline counters import times.csv counts.csv --label run1 | grep run1
