"""Greedy decoding by transformers with a static cache: milliseconds of each step on standard output.

usage: torch_decode.py PAST STEPS BATCH float32|bfloat16 THREADS
"""
import sys
import time

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, StaticCache

past, steps, batch = (int(word) for word in sys.argv[1:4])
torch.set_num_threads(int(sys.argv[5]))
# SmolLM2 with 135 million parameters
config = LlamaConfig(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
                     num_attention_heads=9, num_key_value_heads=3, head_dim=64, tie_word_embeddings=True,
                     max_position_embeddings=8192, attn_implementation="sdpa")
model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, sys.argv[4])).eval()
cache = StaticCache(config=config, max_cache_len=past + steps + 8)
with torch.inference_mode():
    tokens = torch.randint(0, config.vocab_size, (batch, past))
    for i in range(steps + 4):  # the prompt, then tokens; the first three are the warm-up
        where = torch.arange(past) if i == 0 else torch.tensor([past + i - 1])
        start = time.perf_counter()
        logits = model(tokens, past_key_values=cache, cache_position=where, use_cache=True,
                       logits_to_keep=1).logits
        tokens = logits[:, -1:].argmax(-1)
        if i > 3:
            print("%.4f" % ((time.perf_counter() - start) * 1e3))
