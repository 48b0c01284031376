# A view costs nothing; its network is a row all the same, and has no intensity.
echo '{"schema": "roofline.net/1", "model": "view", "input": {"image": [3, 8, 8]}, "nodes": [{"op": "flatten"}]}' > view.json
roofline complexity --net view.json --columns model macs unfused_bytes unfused_ai
roofline complexity --net view.json --columns report --format csv
