echo '{"lab": {"peak_gflops": null, "peak_gbps": 92}}' >peaks.json
roofline peaks set peaks.json lab peak_gflops 420 --source "data sheet" && cat peaks.json
