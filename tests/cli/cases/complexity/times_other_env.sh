echo '{"lab": {"peak_gflops": 1000, "peak_gbps": 50}}' > peaks.json
roofline complexity -m resnet18 --peaks peaks.json --env lap
