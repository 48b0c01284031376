# Runs without a ceiling do not stop the others: all that is missing is named at once, with the
# reason why it is, and --skip-missing places the rest.
cat >peaks.json <<END
{"lab_cpu": {"fp32": {"peak_gflops": 420}, "peak_gbps": 92}}
END
cat >metrics.csv <<END
env,status,backend,model,batch,precision,mode,optimizer,step_ms_median,autocast
lab_cpu,ok,cpu,resnet18,4,fp32,train,sgd,500,
lab_cpu,ok,cpu,resnet18,4,bf16,train,sgd,500,bf16
lab_cpu,ok,cpu,resnet18,4,amp,train,sgd,500,bf16
lab_cpu,ok,cpu,resnet18,4,tf32,train,sgd,500,
END
roofline -q points --metrics metrics.csv --peaks peaks.json
code=$?
roofline -q points --metrics metrics.csv --peaks peaks.json --skip-missing --format csv | cut -d, -f1-4
exit $code
