#!/usr/bin/env python3
"""Lets ExecuTorch's TextLLMRunner go on with a prompt, and compares with ONNX Runtime; exit code 1 when they disagree.

  generate.py FOLDER PROGRAM...
"""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "llm"))
import models  # noqa: E402
import runner  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

PROMPT, TOKENS = "then one red dog ran over his log, while two", 24


def main():
    folder, *programs = sys.argv[1:]
    path = os.path.join(folder, "tokenizer.json")
    tokenizer = Tokenizer.from_file(path)
    ids = tokenizer.encode(PROMPT, add_special_tokens=False).ids
    want = tokenizer.decode(models.greedy(folder, ids, TOKENS)[0])
    bad = 0
    for program in programs:
        got = runner.generate(os.path.join(folder, program), path, [PROMPT], TOKENS)[0]["text"]
        print(f"{program}: {PROMPT}{got}")
        bad |= got != want
    print("ONNX Runtime says the same" if not bad else f"ONNX Runtime says {want!r}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
