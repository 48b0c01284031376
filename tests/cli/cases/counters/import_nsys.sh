# Times of kernels, and nothing else.
cd "$RFL_TEST_DATA/profile" && roofline counters import s04_nsys_cuda_gpu_kern_sum.csv
