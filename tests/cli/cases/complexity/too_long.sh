roofline complexity -m gpt2 --context-length 4096
