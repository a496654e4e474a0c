"""Signal processing: windows, Fourier transforms."""

import numpy as np
from onnx import helper

from builder import op

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def register_window(name):
    @op(name, 17, weight=0.4)
    def window(b):
        to = helper.np_dtype_to_tensor_dtype(b.choice([F32, F64]))
        # A symmetric window of two is only its ends, where Blackman's terms cancel: what is left is rounding alone.
        b.node(name, [b.constant(np.array(b.whole(3, 12)))], periodic=b.choice([None, 0, 1]), output_datatype=b.choice([None, to]))


for _name in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    register_window(_name)


@op("MelWeightMatrix", 17, weight=0.4)
def mel_weight_matrix(b):
    values = [np.array(b.whole(3, 6)), np.array(b.choice([16, 32])), np.array(8000), np.array(0.0, np.float32), np.array(4000.0, np.float32)]
    b.node("MelWeightMatrix", [b.constant(v) for v in values])


@op("DFT", 17, weight=0.8)
def dft(b):
    rank = b.whole(2, 3)
    complex_ = b.chance(0.5)
    shape = [b.whole(1, 3), *(b.whole(2, 8) for _ in range(rank - 1)), 2 if complex_ else 1]
    x = b.like(F32, shape, -5, 5)
    axis = b.whole(1, rank - 1)
    onesided = None if complex_ else b.choice([None, 0, 1])
    length = b.constant(np.array(shape[axis] + b.whole(-1, 2))) if b.chance(0.3) else ""
    inverse = b.choice([None, 0, 1]) if complex_ else None
    if b.opset >= 20:
        b.node("DFT", [x, length, b.constant(np.array(axis))], onesided=onesided, inverse=inverse)
    else:
        b.node("DFT", [x, length], axis=axis, onesided=onesided, inverse=inverse)


@op("STFT", 17, weight=0.5)
def stft(b):
    length, frame, step = b.whole(10, 24), b.choice([4, 6, 8]), b.whole(1, 4)
    x = b.like(F32, (b.whole(1, 2), length, 1), -5, 5)
    window = b.fresh(F32, (frame,), 0.1, 1, constant=True) if b.chance(0.6) else ""
    b.node("STFT", [x, b.constant(np.array(step)), window, b.constant(np.array(frame))], onesided=b.choice([None, 0, 1]))
