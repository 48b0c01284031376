# What people have beside the files that can be read: each message says what it is, and what to do.
mkdir runs
printf 'Dispatch_ID,GPU_ID,Grid_Size,Kernel_Name,SQ_WAVES,Start_Timestamp,End_Timestamp\n0,2,1,k,1,2,3\n' >runs/pmc_perf.csv
printf 'SQLite format 3\0' >runs/run.sqlite
printf '{\n  "schemaVersion": 1,\n  "traceEvents": [\n' >runs/trace.json
printf 'x\0y' >runs/run.ncu-rep
printf 'x\0y' >runs/run.nsys-rep
printf 'PERFILE2' >runs/perf.data
roofline counters import runs/run.ncu-rep
roofline counters import runs
