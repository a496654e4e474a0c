"""Small language models for tests: trained for a moment on a text, exported with optimum's names, with a tokenizer.

A text of a few rhymes, characters as tokens: a model of two layers learns it within seconds, so that greedy
decoding gives words, and the margins between the best tokens are larger than what float arithmetic adds.
"""

import json
import os

import numpy as np
import torch

TEXT = ("a big cat sat on my mat. then one red dog ran over his log, while two hens fed. "
        "every bird can sing; no fish will. snow is cold, sun is hot! count: three, four, five. ") * 6
SPECIAL = ["<s>", "</s>", "<unk>"]
BOS, EOS = 0, 1


def make_tokenizer(path):
    """BPE without merges over characters; returns the vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    letters = sorted({pre for c in set(TEXT) for pre, _ in pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(c)})
    vocabulary = {t: i for i, t in enumerate(SPECIAL + letters)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(path)
    return tokenizer


def build(kind, words, dim=64, layers=2, heads=4, context=128):
    import transformers
    torch.manual_seed(3)
    if kind == "gpt":
        config = transformers.GPT2Config(vocab_size=words, n_embd=dim, n_layer=layers, n_head=heads, n_positions=context,
                                         resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=BOS, eos_token_id=EOS)
        model = transformers.GPT2LMHeadModel(config)
    else:
        config = transformers.LlamaConfig(vocab_size=words, hidden_size=dim, num_hidden_layers=layers, num_attention_heads=heads,
                                          num_key_value_heads=heads // 2, head_dim=dim // heads, intermediate_size=2 * dim,
                                          max_position_embeddings=context, bos_token_id=BOS, eos_token_id=EOS)
        model = transformers.LlamaForCausalLM(config)
    model.config._attn_implementation = "eager"
    return model


def train(model, tokenizer, steps=220, length=96):
    data = torch.tensor(tokenizer.encode(TEXT, add_special_tokens=False).ids)
    generator = torch.Generator().manual_seed(5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for _ in range(steps):
        at = torch.randint(0, len(data) - length - 1, (6,), generator=generator)
        batch = torch.stack([data[i:i + length] for i in at])
        loss = model(input_ids=batch, labels=batch, use_cache=False).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    return float(loss.detach())


class Decoder(torch.nn.Module):
    """Past keys and values in, logits and grown keys and values out, as optimum exports it."""

    def __init__(self, model):
        super().__init__()
        self.model, self.layers = model, model.config.num_hidden_layers

    def forward(self, input_ids, attention_mask, position_ids, *past):
        from transformers import DynamicCache
        cache = DynamicCache()
        for i in range(self.layers):
            cache.update(past[2 * i], past[2 * i + 1], i)
        result = self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                            past_key_values=cache, use_cache=True, return_dict=True)
        grown = [t for layer in result.past_key_values.layers for t in (layer.keys, layer.values)]
        return (result.logits, *grown)


def cache_shape(config):
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return heads, width


def export(model, path):
    """Writes the decoder as ONNX."""
    config, past, new = model.config, 5, 3
    heads, width = cache_shape(config)
    pairs = [f"{i}.{kind}" for i in range(config.num_hidden_layers) for kind in ("key", "value")]
    example = (torch.ones(1, new, dtype=torch.int64), torch.ones(1, past + new, dtype=torch.int64),
               torch.arange(past, past + new)[None], *[torch.randn(1, heads, past, width) for _ in pairs])
    names = ["input_ids", "attention_mask", "position_ids"] + [f"past_key_values.{p}" for p in pairs]
    outputs = ["logits"] + [f"present.{p}" for p in pairs]
    open_dim = torch.export.Dim.DYNAMIC
    shapes = ({1: open_dim}, {1: open_dim}, {1: open_dim}, tuple({2: open_dim} for _ in pairs))
    with torch.no_grad():
        torch.onnx.export(Decoder(model).eval(), example, path, dynamo=True, opset_version=18, input_names=names,
                          output_names=outputs, dynamic_shapes=shapes, external_data=False, verbose=False)


def make(folder, kind, **sizes):
    """model.onnx and tokenizer.json in folder; returns the loss. kind: gpt, llama, or fused or fused4, a llama of fused operators."""
    torch.set_num_threads(1)
    os.makedirs(folder, exist_ok=True)
    tokenizer = make_tokenizer(os.path.join(folder, "tokenizer.json"))
    model = build(kind, tokenizer.get_vocab_size(), **sizes)
    loss = train(model, tokenizer)
    if kind.startswith("fused"):
        import fused
        fused.export(model, folder, four_bits=kind.endswith("4"))
    else:
        export(model, os.path.join(folder, "model.onnx"))
    write_config(model, folder)
    return loss


def write_config(model, folder):
    heads, width = cache_shape(model.config)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"layers": model.config.num_hidden_layers, "heads": heads, "width": width}, f)


def greedy(folder, prompt_ids, count, threads=1):
    """What ONNX Runtime generates, and the seconds of the steps after the prompt."""
    import time

    import onnxruntime
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), options, providers=["CPUExecutionProvider"])
    wanted = {i.name for i in session.get_inputs()}
    names = [f"past_key_values.{i}.{kind}" for i in range(config["layers"]) for kind in ("key", "value")]
    past = [np.zeros((1, config["heads"], 0, config["width"]), np.float32) for _ in names]
    new, start, out, seconds = list(prompt_ids), 0, [], 0.0
    for step in range(count):
        feed = {"input_ids": np.array([new], np.int64), "attention_mask": np.ones((1, start + len(new)), np.int64),
                "position_ids": np.arange(start, start + len(new), dtype=np.int64)[None], **dict(zip(names, past))}
        begin = time.perf_counter()
        logits, *past = session.run(None, {n: v for n, v in feed.items() if n in wanted})
        seconds += time.perf_counter() - begin if step else 0.0
        start += len(new)
        new = [int(np.argmax(logits[0, -1]))]
        out += new
    return out, seconds
