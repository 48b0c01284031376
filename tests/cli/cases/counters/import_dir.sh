# A folder: what is no file of a profiler is named and passed.
mkdir runs
cp "$RFL_TEST_DATA"/profile/timev_s1_spaces.txt "$RFL_TEST_DATA"/profile/s04_nsys_cuda_gpu_kern_sum.csv runs
echo "notes of mine" >runs/notes.txt
roofline counters import runs | grep runs/
