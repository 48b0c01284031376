# The table of another program, without a status: what the summary reads. All that it lacks is named
# at once.
cat >peaks.json <<END
{"lab_cpu": {"peak_gflops": 420, "peak_gbps": 92}}
END
printf 'net,n,secs\nresnet18,4,0.50\nresnet18,4,0.25\n' >other.csv
roofline points --metrics other.csv --peaks peaks.json
roofline -q points --metrics other.csv --peaks peaks.json --map batch=n 'step_ms_mean=secs s' 'precision="fp32"' \
	'mode="train"' 'optimizer="sgd"' 'backend="cpu"' 'env="lab_cpu"' --format csv | cut -d, -f1-5,14,21
# The label says some of it; a mode that it does not say is asked for.
printf 'label,ips\nlab_cpu_resnet18_fp32_bs4_r1,8\n' >label.csv
roofline -q points --metrics label.csv --peaks peaks.json --map 'backend="cpu"'
