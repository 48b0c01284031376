# A stand-in for libcupti: names and passes are asked of it.
fakes=$(dirname "$ROOFLINE")/../tests/fakes
RFL_CUPTI_PATH=$fakes roofline counters list --chip GA100 --format csv >list.csv
head -n 1 list.csv
grep -e "^dram_" -e "^flops.fp16" -e "^flops.tensor_fp16" -e "^pcie" list.csv
RFL_CUPTI_PATH=$fakes roofline counters list --chip GA100 --precision amp --format csv |
	grep "^flops.tensor_fp16"
RFL_CUPTI_PATH=$fakes roofline counters list --chip GA100 --all --format csv | head -n 2
