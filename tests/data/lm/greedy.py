#!/usr/bin/env python3
"""Greedy tokens of small language models, by Hugging Face's transformers in float64 without a cache.

The weights have the formula of data/fill.h, in the order in which rfl_lm_net() creates parameters.
usage: greedy.py >greedy.json          (needs torch and transformers; written with those named in it)
"""
import json

import numpy
import torch
import transformers

BATCH, PROMPT, NEW = 3, 7, 12
GAMMA, A, B = (numpy.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
TOKENS = 0xFFFFFFFE

SIZES = {"vocab_size": 211, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 3,
         "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-6,
         "rope_theta": 10000.0, "max_position_embeddings": 256, "hidden_act": "silu"}
GPT2 = {"vocab_size": 211, "n_embd": 64, "n_inner": 160, "n_layer": 3, "n_head": 8, "n_positions": 64,
        "layer_norm_epsilon": 1e-6}
LAYER = ["input_layernorm.weight",
         "self_attn.q_proj.weight", "self_attn.q_proj.bias", "self_attn.k_proj.weight",
         "self_attn.k_proj.bias", "self_attn.v_proj.weight", "self_attn.v_proj.bias",
         "self_attn.q_norm.weight", "self_attn.k_norm.weight", "self_attn.o_proj.weight",
         "post_attention_layernorm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
         "mlp.down_proj.weight"]


def raw(p, n):
    with numpy.errstate(over="ignore"):
        z = (numpy.uint64(p) << numpy.uint64(32)) + numpy.arange(n, dtype=numpy.uint64) + GAMMA
        z = (z ^ (z >> numpy.uint64(30))) * A
        z = (z ^ (z >> numpy.uint64(27))) * B
        return z ^ (z >> numpy.uint64(31))


def fill(name, shape, p):
    f = numpy.float32
    n = int(numpy.prod(shape))
    u = ((raw(p, n) >> numpy.uint64(40)).astype(numpy.int32).astype(f) * f(2.0**-24) - f(0.5)) * f(2)
    if "norm" in name:
        values = f(1) + u * f(0.1)
    elif name.endswith("bias"):
        values = u * f(0.1)
    elif "embed" in name:
        values = u * f(0.02 * 3.0**0.5)
    else:
        values = u * f((3.0 / shape[1]) ** 0.5)
    return torch.from_numpy(values.reshape(shape))


def set_gpt2(model):
    """GPT-2 stores q, k, v as one matrix, and all matrices transposed."""
    config, state, p = model.config, model.state_dict(), -1

    def next_fill(name, *shape):
        nonlocal p
        p += 1
        return fill(name, shape, p)

    def module(name, out, inputs):  # the modules that are parts of it, then weight and bias
        weights = [(next_fill("weight", o, inputs), next_fill("bias", o)) for o in out]
        state[name + ".weight"].copy_(torch.cat([w.T for w, _ in weights], 1))
        state[name + ".bias"].copy_(torch.cat([b for _, b in weights]))

    def norm(name):
        state[name + ".weight"].copy_(next_fill("norm", config.n_embd))
        state[name + ".bias"].copy_(next_fill("bias", config.n_embd))

    d = config.n_embd
    state["transformer.wte.weight"].copy_(next_fill("embed", config.vocab_size, d))
    state["transformer.wpe.weight"].copy_(next_fill("embed", config.n_positions, d))
    for layer in range(config.n_layer):
        h = "transformer.h.%d." % layer
        norm(h + "ln_1")
        module(h + "attn.c_attn", [d, d, d], d)
        module(h + "attn.c_proj", [d], d)
        norm(h + "ln_2")
        module(h + "mlp.c_fc", [config.n_inner], d)
        module(h + "mlp.c_proj", [d], config.n_inner)
    norm("transformer.ln_f")


def set_llama(model):
    config, state = model.config, model.state_dict()
    names = ["model.embed_tokens.weight"]
    for layer in range(config.num_hidden_layers):
        names += ["model.layers.%d.%s" % (layer, name) for name in LAYER]
    names += ["model.norm.weight"] + ([] if config.tie_word_embeddings else ["lm_head.weight"])
    names = [name for name in names if name in state]
    assert set(state) - set(names) <= {"lm_head.weight"}, set(state) - set(names)
    for p, name in enumerate(names):
        state[name].copy_(fill(name, tuple(state[name].shape), p))


def greedy(kind, sizes, more, set_weights):
    config = kind(**sizes, **more, attn_implementation="eager")
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float64).eval()
    with torch.no_grad():
        set_weights(model)
    prompt = (raw(TOKENS, BATCH * PROMPT) % numpy.uint64(config.vocab_size)).astype(numpy.int64)
    tokens = torch.from_numpy(prompt.reshape(BATCH, PROMPT))
    margin = 1e9
    with torch.no_grad():
        for _ in range(NEW):
            logits = model(tokens, use_cache=False).logits[:, -1]
            best = logits.topk(2).values
            margin = min(margin, float((best[:, 0] - best[:, 1]).min() / logits.std()))
            tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], 1)
    return {
        "config": {"model_type": kind.model_type, "torch_dtype": "float32", **sizes, **more},
        "tokens": tokens[:, PROMPT:].tolist(),
        "margin": margin,  # between the two largest logits, in standard deviations of the logits
        "logits": logits[:, :8].tolist(),
    }


MODELS = {
    "llama": (transformers.LlamaConfig, SIZES, {"tie_word_embeddings": True}, set_llama),
    "mistral": (transformers.MistralConfig, SIZES,
                {"tie_word_embeddings": False, "sliding_window": 5}, set_llama),
    "qwen2": (transformers.Qwen2Config, SIZES, {"tie_word_embeddings": False}, set_llama),
    "qwen3": (transformers.Qwen3Config, SIZES, {"tie_word_embeddings": True}, set_llama),
    "gpt2": (transformers.GPT2Config, GPT2, {}, set_gpt2),
}
print(json.dumps({
    "by": "transformers %s, torch %s, float64, no cache" % (transformers.__version__, torch.__version__),
    "batch": BATCH, "prompt": PROMPT, "new": NEW,
    "models": {name: greedy(*model) for name, model in MODELS.items()},
}, indent=1))
