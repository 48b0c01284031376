# Of all models those that cannot take the image are left out; each says which layer, and what fits.
roofline complexity -m all --image-size 112 --format csv | cut -d, -f 1 | grep -E '^(resnet18|vit|swin_t|maxvit|inception|gpt2)'
