# A file of errors.
printf "%s\n" "==7== NVPROF is profiling process 7, command: ./a" \
	"==7== Warning: The user does not have permission to profile on the target device." >nvprof.txt
roofline counters import nvprof.txt
