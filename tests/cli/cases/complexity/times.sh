echo '{"lab": {"peak_gflops": 1000, "peak_gbps": 50}}' > peaks.json
roofline complexity -m resnet18 -b 8 --by kind --peaks peaks.json --env lab
roofline complexity -m resnet18 -b 1 8 --train --peaks peaks.json --env lab --format csv --columns model batch time_s bound samples_per_s attainable_flop_per_s
