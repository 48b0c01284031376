# One rate: that of the window. The points have the mean of the summary, over the same runs: a run that
# is there twice counts once, a profiled one not at all, and a slow step is in it (median 100 ms).
cat >peaks.json <<END
{"lab_cpu": {"peak_gflops": 420, "peak_gbps": 92}}
END
cat >metrics.csv <<END
label,env,status,backend,model,batch,precision,mode,optimizer,iters,wall_s,step_ms_median,repeat
lab_cpu_resnet18_fp32_bs4_run1,lab_cpu,oom,cpu,resnet18,4,fp32,train,sgd,10,,,1
lab_cpu_resnet18_fp32_bs4_run1,lab_cpu,ok,cpu,resnet18,4,fp32,train,sgd,10,9,900,1
lab_cpu_resnet18_fp32_bs4_run1,lab_cpu,ok,cpu,resnet18,4,fp32,train,sgd,10,2,100,1
lab_cpu_resnet18_fp32_bs4_run2,lab_cpu,ok,cpu,resnet18,4,fp32,train,sgd,10,4,100,2
lab_cpu_resnet18_fp32_bs4_prof,lab_cpu,ok,cpu,resnet18,4,fp32,train,sgd,10,50,5000,
END
roofline -q summary --metrics metrics.csv
roofline points --metrics metrics.csv --peaks peaks.json
roofline -q points --metrics metrics.csv --peaks peaks.json --format json | tr '{,' '\n\n' |
	grep -E '"(runs|step_s|step_median_s|samples_per_s|flops_per_step|attained_gflops)"'
