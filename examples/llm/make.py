#!/usr/bin/env python3
"""Trains a small Llama on a few rhymes and writes FOLDER/model.onnx and FOLDER/tokenizer.json (half a minute).

  make.py FOLDER [gpt|llama]
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "llm"))
import models  # noqa: E402

models.make(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "llama")
