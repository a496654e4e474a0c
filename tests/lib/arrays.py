"""Arrays in the tests: the dtypes that a .pte can carry, torch and back, files, comparison.

numpy has no bfloat16 of its own; ml_dtypes supplies it (onnx depends on it, so it is always there).
torch.from_numpy does not know it either, hence the detour through int16 views.
"""

import pickle

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)

# ONNX element types (onnx.proto, TensorProto.DataType) that an ExecuTorch program can take and return and on
# which at least some kernel computes. float8, int4 and the like are missing on purpose.
RUNTIME_DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
}


def own(array):
    """A writable, contiguous, native-endian copy. Unlike np.ascontiguousarray it keeps 0-d arrays 0-d."""
    array = np.asarray(array)
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True)


def to_torch(array):
    import torch

    array = own(array)
    half = array.dtype == BF16
    tensor = torch.from_numpy(array.view(np.int16) if half else array)
    if array.size == 0:
        # numpy gives empty arrays strides of 0, at which the runtime's Python binding aborts the process.
        tensor = torch.empty(array.shape, dtype=tensor.dtype)
    return tensor.view(torch.bfloat16) if half else tensor


def from_torch(tensor):
    import torch

    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(BF16)
    return tensor.numpy()


def save_npy(path, array):
    """bfloat16 goes out as the .npy type '<V2' that ml_dtypes writes; load_npy(dtype=...) reads it back."""
    np.save(path, own(array), allow_pickle=False)


def load_npy(path, dtype=None):
    array = np.load(path, allow_pickle=False)
    if dtype is not None and array.dtype != dtype and array.dtype.kind == "V":
        array = array.view(dtype)
    return array


def save_bundle(path, inputs, outputs):
    with open(path, "wb") as f:
        pickle.dump({"inputs": inputs, "outputs": outputs}, f, protocol=5)


def load_bundle(path):
    with open(path, "rb") as f:
        bundle = pickle.load(f)
    return bundle["inputs"], bundle["outputs"]


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def difference(got, want, rtol, atol):
    """None if `got` is `want` within the tolerance, else one line that says how not.

    The rule is that of onnx.backend.test.runner.assert_similar_outputs: same dtype, same shape, NaN equals NaN,
    |got - want| <= atol + rtol * |want|, and two ULPs of slack for bfloat16.
    """
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, expected {list(want.shape)}"
    if got.size == 0:
        return None
    if got.dtype == BF16:
        rtol = max(rtol, 2.0**-6)
        got, want = got.astype(np.float32), want.astype(np.float32)
    if got.dtype.kind == "f":
        close = np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    elif rtol == 0 and atol == 0 or got.dtype == np.bool_:
        close = got == want
    else:
        # uint64 - int64 promotes to float64, which is what assert_allclose does too.
        close = np.isclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol)
    bad = int(close.size - np.count_nonzero(close))
    if bad == 0:
        return None
    at = tuple(int(i) for i in np.unravel_index(int(np.argmin(close)), close.shape))
    with np.errstate(all="ignore"):
        gap = np.abs(got.astype(np.float64) - want.astype(np.float64))
        worst = float(np.nanmax(gap)) if np.isfinite(gap).any() else float("nan")
    where = "[" + ", ".join(map(str, at)) + "]"
    return f"{bad} of {close.size} differ (max {worst:.3g}); at {where}: got {got[at]!s}, expected {want[at]!s}"


def compare_all(got, want, rtol, atol):
    """Like `difference`, of lists; atol may be a list, too."""
    if len(got) != len(want):
        return f"{len(got)} outputs, expected {len(want)}"
    for i, (g, w) in enumerate(zip(got, want)):
        text = difference(g, w, rtol, atol[i] if isinstance(atol, list) else atol)
        if text is not None:
            return f"output {i}: {text}"
    return None
