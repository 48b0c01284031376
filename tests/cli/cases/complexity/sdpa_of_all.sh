# Of all models those that the one fused attention does not fit are left out, and named.
roofline complexity -m all --attention sdpa --format csv | cut -d, -f 1 | grep -E '^(vit_b_16|swin|maxvit|gpt2)'
