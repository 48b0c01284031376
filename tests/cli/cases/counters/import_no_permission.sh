# Files of errors: everything is unavailable, for the reason that the profiler gives.
printf "%s\n" "==7== NVPROF is profiling process 7, command: ./a" \
	"==7== Warning: The user does not have permission to profile on the target device." >nvprof.txt
printf "%s\n" "==PROF== Connected to process 7 (/a)" \
	"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters" >ncu.csv
roofline counters import nvprof.txt ncu.csv
roofline -q counters import ncu.csv --format json | grep -e '"set"' -e '"reason"' -e '"ai": ' -e '"flops.fp32": '
