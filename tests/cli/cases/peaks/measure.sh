# a file of the short form stays readable, the measured environment joins it
echo '{"old": {"peak_gflops": 420, "peak_gbps": 92}}' >peaks.json
roofline peaks measure --env lab_cpu --output peaks.json --only fp32.vector --quick --repeats 3 -q >/dev/null &&
roofline peaks show peaks.json --format csv | cut -d, -f1,2,4,6
