# nvprof without --csv.
printf "%s\n" "==7== NVPROF is profiling process 7, command: ./a" "==7== Profiling result:" \
	"            Type  Time(%)      Time     Calls       Avg       Min       Max  Name" >nvprof.txt
roofline counters import nvprof.txt
