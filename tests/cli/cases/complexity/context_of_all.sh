# Of all models those that read images have no context length.
roofline complexity -m all --context-length 64 --format csv | cut -d, -f 1,2 | grep -E '^(resnet18|tiny_lm|gpt2),'
