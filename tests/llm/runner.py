#!/usr/bin/env python3
"""Language models on ExecuTorch's own runner, against ONNX Runtime: the same tokens, greedily.

    tests/llm/runner.py --etc build/release/etc [-k PATTERN] [--models DIR]

Makes a GPT and a Llama (models.py), the latter also of fused operators, in floats and of four bits (fused.py), lowers each with
--derive llm for the kernels of the runtime, for XNNPACK and with weights of four bits, and lets TextLLMRunner go on with prompts that are shorter and longer than its longest prefill.
Each program is verified, and `etc run` computes the first calls, too. --models keeps the models for the next time.
"""

import argparse
import fnmatch
import glob
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]

CONTEXT, PREFILL, TOKENS = 128, 16, 24
PROMPTS = ["a big cat sat on", "then one red dog ran over his log, while two", "every bird can sing; no fish will. snow is"]
VARIANTS = {"portable": [], "xnnpack": ["--backend", "xnnpack"],
            "int4": ["--quantize", "int4-weight-only", "--backend", "xnnpack"],
            "int4-portable": ["--quantize", "int4-weight-only"]}


def load_runner():
    """The runner's module, without the package around it, which wants transformers."""
    import runtime
    runtime.without_exporter()
    from executorch.extension.pybindings import portable_lib  # noqa: F401  (registers the kernels)
    import executorch.extension.llm as llm
    folder = os.path.join(list(llm.__path__)[0], "runner")
    path = glob.glob(os.path.join(folder, "_llm_runner*.so"))[0]
    spec = importlib.util.spec_from_file_location("_llm_runner", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def child(program, tokenizer, prompts, tokens):
    """Texts and decode times, as JSON on the last line; in a process of its own, which a bad program may end."""
    module = load_runner()
    runner = module.TextLLMRunner(program, tokenizer)
    config = module.GenerationConfig(echo=False, max_new_tokens=tokens, temperature=0.0)
    results = []
    for prompt in prompts:
        pieces, stats = [], []
        runner.generate(prompt, config, pieces.append, stats.append)
        runner.reset()
        last = stats[-1]
        results.append({"text": "".join(pieces), "tokens": last.num_generated_tokens,
                        "ms": last.inference_end_ms - last.prompt_eval_end_ms})
    print("\n" + json.dumps(results))


def generate(program, tokenizer, prompts=PROMPTS, tokens=TOKENS, timeout=300):
    """What the runner says; a RuntimeError with the end of its log when it fails."""
    command = [sys.executable, os.path.abspath(__file__), "--child", program, tokenizer, str(tokens), *prompts]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines or not lines[-1].startswith("["):
        raise RuntimeError(f"exit {done.returncode}: " + (done.stdout + done.stderr)[-500:])
    return json.loads(lines[-1])


def lower(etc, folder, variant, target):
    model = os.path.join(folder, "lowered.onnx")  # where it is another one than for ONNX Runtime
    command = [etc, "lower", model if os.path.exists(model) else os.path.join(folder, "model.onnx"), "--derive",
               f"llm:context={CONTEXT},prefill={PREFILL},bos=0,eos=1", *VARIANTS[variant], "-o", target, "--verify-each", "--roundtrip"]
    for run in (command, [etc, "verify", target]):
        done = subprocess.run(run, capture_output=True, text=True)
        if done.returncode != 0:
            return f"{run[1]}: {done.stderr.strip().splitlines()[0]}"
    return None


def check(etc, folder, variant, work):
    """None, or what is wrong."""
    import models
    from tokenizers import Tokenizer
    target = os.path.join(work, f"{variant}.pte")
    tokenizer_path = os.path.join(folder, "tokenizer.json")
    message = lower(etc, folder, variant, target)
    if message:
        return message
    tokenizer = Tokenizer.from_file(tokenizer_path)
    results = generate(target, tokenizer_path)
    for prompt, result in zip(PROMPTS, results):
        ids = tokenizer.encode(prompt, add_special_tokens=False).ids
        want = tokenizer.decode(models.greedy(folder, ids, TOKENS)[0])
        if result["text"] != want:
            return f"{prompt!r} goes on with {result['text']!r}, ONNX Runtime says {want!r}"
    return None


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2], sys.argv[3], sys.argv[5:], int(sys.argv[4]))
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", required=True)
    p.add_argument("-k", metavar="PATTERN", default="*")
    p.add_argument("--models", help="a folder that the models are kept in")
    args = p.parse_args()
    import models
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="etc-llm-") as work:
        for kind in ("gpt", "llama", "fused", "fused4"):
            chosen = [v for v in VARIANTS if fnmatch.fnmatch(f"{kind}-{v}", args.k)]
            folder = os.path.join(args.models or work, kind)
            if chosen and not os.path.isfile(os.path.join(folder, "config.json")):
                models.make(folder, kind)
            for variant in chosen:
                try:
                    message = check(args.etc, folder, variant, work)
                except (RuntimeError, subprocess.TimeoutExpired) as e:
                    message = str(e)
                if message:
                    print(f"FAIL {kind}-{variant}: {message}")
                passed, failed = passed + (not message), failed + bool(message)
    print(f"llm: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
