# What people have beside the files that can be read: each message says what it is, and what to do.
mkdir runs
printf 'Dispatch_ID,GPU_ID,Grid_Size,Kernel_Name,SQ_WAVES,Start_Timestamp,End_Timestamp\n0,2,1,k,1,2,3\n' >runs/pmc_perf.csv
printf '"Correlation_Id","Dispatch_Id","Agent_Id","Kernel_Name","Counter_Name","Counter_Value"\n1,1,4,"k","SQ_WAVES",1\n' >runs/v3_counters.csv
printf '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"k",1,165920,165920,100.0\n' >runs/v1_stats.csv
printf 'Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,FetchSize\n0,"k",0,0,0,1,2,64,64,12.0\n' >runs/v1.csv
printf 'SQLite format 3\0' >runs/run.sqlite
printf '\n{\n  "schemaVersion": 1,\n  "traceEvents": [\n' >runs/trace.json
printf '[{"name":"k","ph":"X","ts":1,"dur":2},\n' >runs/trace_array.json
printf 'x\0y' >runs/run.ncu-rep
printf 'x\0y' >runs/run.nsys-rep
printf 'PERFILE2' >runs/perf.data
cat >runs/denied.txt <<'END'
Error:
Access to performance monitoring and observability operations is limited.
Consider adjusting /proc/sys/kernel/perf_event_paranoid setting to open
access to performance monitoring and observability operations for processes
without CAP_PERFMON, CAP_SYS_PTRACE or CAP_SYS_ADMIN Linux capability.
perf_event_paranoid setting is 4:
END
printf "event syntax error: 'fp_arith_inst_retired.scalar_single'\n" >runs/unknown_event.txt
roofline counters import runs/run.ncu-rep
roofline counters import runs
