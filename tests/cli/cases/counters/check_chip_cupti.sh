# The same of the real one, where there is one that can be used (it cannot under a sanitizer).
unset RFL_CUPTI_PATH
roofline counters check --chip GH100 --metrics gpu__time_duration.sum >/dev/null 2>why || { cat why >&2; exit 77; }
roofline counters check --chip GH100 --format csv \
	--metrics gpu__time_duration.sum,dram__bytes_read.sum,lts__t_bytes.sum,smsp__sass_thread_inst_executed_op_ffma_pred_on.sum |
	cut -d, -f1-4
roofline counters check --chip "RTX 5090" --metrics dram__bytes_read.sum --format csv
roofline -q counters list --chip GH100 --ncu | tr , "\n" | grep -c "\.sum\$\|\.max\$"
