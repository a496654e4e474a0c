"""ONNX Runtime as the reference: its answers must not depend on the CPU."""

import onnxruntime

errors = onnxruntime.capi.onnxruntime_pybind11_state


class Session:
    """Of a path or of the bytes of a model. CPUs without VNNI saturate sums of products of u8 and s8 unless they are told to move the
    weights to u8. Where that finds no kernel (s8 with s8, which is exact), or makes a model that does not run, the model stays as it
    is. Some operators saturate all the same: cases of those have weights of 7 bits."""

    def __init__(self, model, options):
        self.model, self.options = model, options
        try:
            self.session = self.open("1")
        except (errors.NotImplemented, errors.Fail):
            self.session = self.open("0")

    def open(self, exact):
        self.options.add_session_config_entry("session.x64quantprecision", exact)
        return onnxruntime.InferenceSession(self.model, self.options, providers=["CPUExecutionProvider"])

    def get_inputs(self):
        return self.session.get_inputs()

    def get_outputs(self):
        return self.session.get_outputs()

    def run(self, names, feeds):
        try:
            return self.session.run(names, feeds)
        except errors.Fail:
            self.session = self.open("0")
            return self.session.run(names, feeds)
