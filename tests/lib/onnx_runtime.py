"""ONNX Runtime as the reference: its answers must not depend on the CPU."""

import onnxruntime


def session(model, options):
    """A session of a path or of the bytes of a model. CPUs without VNNI saturate sums of products of u8 and s8 unless they are told
    to move the weights to u8; where there is no kernel for those (s8 with s8, which is exact), the model stays as it is. Some operators
    saturate all the same: cases of those have weights of 7 bits."""
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        options.add_session_config_entry("session.x64quantprecision", "0")
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
