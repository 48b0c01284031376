export RFL_CUPTI_PATH=$(dirname "$ROOFLINE")/../tests/fakes
roofline counters check --chip GH100 --metrics dram__bytes_read.sum pcie__read_bytes.sum --format csv
