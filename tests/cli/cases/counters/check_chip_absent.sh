export RFL_CUPTI_PATH=$(dirname "$ROOFLINE")/../tests/fakes
roofline counters check --chip GH100 --metrics dram__bytes_read.sum,flop_count_sp,dram__bytes_read --format csv
