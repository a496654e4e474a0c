#!/usr/bin/env python3
"""Models of the zoo as ONNX Runtime's tools rewrite them, on the real runtime against ONNX Runtime.

    tests/conformance/variants.py --models build/zoo [-k PATTERN,...] [-v]

    extended   graph optimisations of the session, up to the level "extended"
    fusion     onnxruntime.transformers.optimizer, for transformers
    dynamic, qoperator, qdq    onnxruntime.quantization: weights only, and calibrated on the model's own input
    nbits      MatMulNBits with weights of 4 bits

Patterns fit NAME.VARIANT, for example 'bert.*' or '*.qdq'. A variant that the tool cannot make is skipped, with its reason
under -v. Quantized models are compared with a wider tolerance: a value that both sides round to a whole number may fall to
either side.
"""

import glob
import json
import logging
import os
import shutil
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402

import arrays  # noqa: E402
import cases  # noqa: E402
import etc_command  # noqa: E402
import onnx_runtime  # noqa: E402

TRANSFORMERS = {"bert": "bert", "gpt2": "gpt2", "llama": "gpt2", "vit": "vit", "t5": "t5", "whisper": "bart", "swin": "swin", "clip": "clip"}
QUANTIZED = {"bert", "gpt2_script", "vit", "t5_encoder", "swin", "resnet8", "mobilenet_v3", "shufflenet_v2", "tabular_mlp", "yolo3", "unet", "espcn"}
TOLERANCE = {"dynamic": 5e-2, "qoperator": 5e-2, "qdq": 5e-2}


def session(path, level=onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, save=None):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, 4
    if save:
        options.optimized_model_filepath = save
    return onnx_runtime.Session(path, options)


def read_feed(folder):
    with open(os.path.join(folder, "meta.json"), encoding="utf-8") as f:
        names = json.load(f)["inputs_names"]
    return {n: np.load(os.path.join(folder, f"input_{i}.npy")) for i, n in enumerate(names)}


def make_extended(source, target, feed):
    for data in glob.glob(source + ".data"):  # to which the new model refers, too
        shutil.copy(data, os.path.dirname(target))
    session(source, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED, target)


def make_fusion(source, target, feed):
    from onnxruntime.transformers.optimizer import optimize_model

    name = os.path.basename(os.path.dirname(source))
    kind = next(v for k, v in TRANSFORMERS.items() if k in name)
    optimize_model(source, model_type=kind, num_heads=0, hidden_size=0, opt_level=0).save_model_to_file(target)


def make_dynamic(source, target, feed):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    # Weights of 7 bits: of 8, ONNX Runtime saturates sums of products on CPUs without VNNI.
    quantize_dynamic(source, target, weight_type=QuantType.QInt8, reduce_range=True)


def make_static(source, target, feed, qdq):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = [feed]

        def get_next(self):
            return self.left.pop() if self.left else None

    basic = target + ".basic.onnx"
    session(source, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC, basic)
    quantize_static(basic, target, Reader(), quant_format=QuantFormat.QDQ if qdq else QuantFormat.QOperator, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8 if qdq else QuantType.QUInt8)


def make_nbits(source, target, feed):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(source), bits=4, block_size=16, is_symmetric=False)
    quantizer.process()
    quantizer.model.save_model_to_file(target, False)


VARIANTS = {"extended": make_extended, "fusion": make_fusion, "dynamic": make_dynamic, "nbits": make_nbits,
            "qoperator": lambda *a: make_static(*a, False), "qdq": lambda *a: make_static(*a, True)}


def wanted(name, variant):
    if variant == "extended":
        return True
    if variant in ("fusion", "nbits"):
        return any(k in name for k in TRANSFORMERS)
    return name in QUANTIZED


class Variant:
    def __init__(self, folder, variant):
        self.folder, self.variant, self.name = folder, variant, f"{os.path.basename(folder)}.{variant}"


def check(case, args, server, work):
    """None, why it is skipped, or what is wrong."""
    made, target, bundle = (os.path.join(work, x) for x in ("made.onnx", "model.pte", "data.pkl"))
    source, feed = os.path.join(case.folder, "model.onnx"), read_feed(case.folder)
    try:
        VARIANTS[case.variant](source, made, feed)
        reference = session(made)
        names = [i.name for i in reference.get_inputs()]
        expected = reference.run(None, {n: feed[n] for n in names})
    except Exception as error:  # noqa: BLE001
        return cases.Skip(f"{type(error).__name__}: {' '.join(str(error).split())[-200:]}")
    dims = {d: str(n) for i in reference.get_inputs() for d, n in zip(i.shape, feed[i.name].shape) if isinstance(d, str)}
    stage, code, message, _ = etc_command.lower(args.etc, made, target, dims, args.extra, args.timeout)
    if stage != "ok":
        return f"{stage}: {code} {message}"
    arrays.save_bundle(bundle, [feed[n] for n in names], expected)
    tolerance = max(TOLERANCE.get(case.variant, 1e-3), 2e-2 if any(y.dtype == np.float16 for y in expected) else 0)
    answer = server.run({"pte": target, "bundle": bundle, "rtol": tolerance, "atol": tolerance}, args.timeout)
    return None if answer["stage"] == "ok" else f"{answer['stage']}: {answer['message']}"


def main():
    p = cases.parser(__doc__, timeout=120.0)
    p.add_argument("--models", default=os.path.join(ROOT, "build", "zoo"))
    args = p.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    names = sorted(n for n in os.listdir(args.models) if os.path.exists(os.path.join(args.models, n, "meta.json")))
    return cases.run([Variant(os.path.join(args.models, n), v) for n in names for v in VARIANTS if wanted(n, v)], check, args)


if __name__ == "__main__":
    sys.exit(main())
