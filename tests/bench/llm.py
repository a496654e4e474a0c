#!/usr/bin/env python3
"""Tokens per second: a decoder lowered with --derive llm in ExecuTorch's runner, and ONNX Runtime on the model.

    tests/bench/llm.py --etc build/release/etc [--kinds gpt,llama] [--dim 256] [--layers 4] [--tokens 96] [--rounds 3]

The models have random weights: what they say does not matter, and both greedy runs go on for as many tokens. ONNX
Runtime keeps its cache in numpy arrays, as its users do. The best of the rounds counts; fails below --least times ONNX Runtime.
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "llm")]

import models  # noqa: E402
import runner  # noqa: E402

PROMPT = "then one red dog ran over his log, while two"
VARIANTS = {"float": [], "int4": ["--quantize", "int4-weight-only"]}


def make(folder, kind, args):
    os.makedirs(folder, exist_ok=True)
    tokenizer = models.make_tokenizer(os.path.join(folder, "tokenizer.json"))
    model = models.build(kind, args.words, dim=args.dim, layers=args.layers, heads=8, context=256).eval()
    models.export(model, os.path.join(folder, "model.onnx"))
    models.write_config(model, folder)
    return tokenizer


def ort_speed(folder, ids, args):
    _, seconds = models.greedy(folder, ids, args.tokens, threads=args.threads)
    return (args.tokens - 1) / seconds


def runner_speed(folder, target, args):
    """The second of two runs of one process: the first one loads."""
    results = runner.generate(target, os.path.join(folder, "tokenizer.json"), [PROMPT] * 2, args.tokens)
    return max(1000 * r["tokens"] / max(r["ms"], 1) for r in results)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", required=True)
    p.add_argument("--kinds", default="gpt,llama")
    for name, value in (("dim", 256), ("layers", 4), ("words", 2048), ("tokens", 96), ("rounds", 3), ("threads", os.cpu_count())):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--least", type=float, default=1.0)
    args = p.parse_args()
    slow = 0
    print(f"{'model':14}{'etc tok/s':>12}{'ort tok/s':>12}{'ratio':>8}")
    with tempfile.TemporaryDirectory(prefix="etc-llm-") as work:
        for kind in args.kinds.split(","):
            folder = os.path.join(work, kind)
            tokenizer = make(folder, kind, args)
            ids = tokenizer.encode(PROMPT, add_special_tokens=False).ids
            for name, extra in VARIANTS.items():
                target = os.path.join(work, f"{kind}-{name}.pte")
                subprocess.run([args.etc, "lower", os.path.join(folder, "model.onnx"), "-q", "--backend", "xnnpack", *extra,
                                "--derive", "llm:context=256,prefill=64", "-o", target], check=True)
                pairs = [(runner_speed(folder, target, args), ort_speed(folder, ids, args)) for _ in range(args.rounds)]
                ours, ort = (max(speeds) for speeds in zip(*pairs))
                slow += ours < args.least * ort
                print(f"{kind + ' ' + name:14}{ours:12.0f}{ort:12.0f}{ours / ort:8.2f}", flush=True)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
