roofline peaks set peaks.json lab_gpu bf16.matrix 121000 --kind gpu --device "NVIDIA L4" --source "data sheet" &&
roofline peaks set peaks.json lab_gpu DRAM 300 --source "data sheet" &&
cat peaks.json
