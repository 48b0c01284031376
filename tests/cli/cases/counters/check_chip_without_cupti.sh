mkdir empty
RFL_CUPTI_PATH=empty roofline counters check --chip GH100 --metrics dram__bytes_read.sum
