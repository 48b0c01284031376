roofline counters check --metrics dram__bytes_read.sum
