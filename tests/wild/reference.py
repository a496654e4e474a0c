"""ONNX Runtime on one thread: what a model computes, how long it takes, and how much it moves by itself.

The movement of an output is the largest difference of its elements between runs that ought to agree: with the optimiser and
without, and with each float input moved by 1e-6 of its largest element, once in each direction of a random pattern. Where all inputs
are ids, the float weights are moved in their place. A model with dynamically quantized products moves a lot, since a rounded value goes
to the next step.
"""

import time

import numpy as np

MOVED = 1e-6


def session(path, optimise=True, exact=True):
    """exact: the same answers on every CPU; for times, as it comes."""
    import onnxruntime

    import onnx_runtime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads, options.inter_op_num_threads = 4, 1, 1
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if exact:
        return onnx_runtime.Session(path, options)
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def unflatten(flat, path):
    """ONNX Runtime's own form of a model, .ort, as .onnx; nothing is optimised that was not before. It forgets the names of branches."""
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = path
    options.add_session_config_entry("session.save_model_format", "ONNX")
    onnxruntime.InferenceSession(flat, options, providers=["CPUExecutionProvider"])
    model = onnx.load(path)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                attribute.g.name = attribute.name
    onnx.save(model, path)


def run(model, arrays):
    return [as_array(x) for x in model.run(None, {x.name: a for x, a in zip(model.get_inputs(), arrays)})]


def as_array(output):
    """One map a sample, as scikit-learn's classifiers return their probabilities, becomes a row each."""
    return np.array([list(x.values()) for x in output], np.float32) if isinstance(output, list) else output


def can_move(array):
    """Ids stay as they are, also those that are written as floats."""
    return array.dtype.kind == "f" and array.size > 0 and bool(np.any(array != np.rint(array)))


def moved(arrays, sign):
    """Each float array moved by 1e-6 of its largest element (or of 1, if that is more)."""
    rng = np.random.default_rng(7)
    result = []
    for a in arrays:
        if can_move(a):
            step = MOVED * max(1.0, float(np.abs(a).max()))
            a = np.asarray(a + sign * step * rng.choice([-1.0, 1.0], a.shape), a.dtype)
        result.append(a)
    return result


def largest_gap(a, b):
    if a.shape != b.shape or a.size == 0:
        return 0.0
    with np.errstate(all="ignore"):
        gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return float(np.nanmax(gap)) if np.isfinite(gap).any() else 0.0


def with_moved_weights(path, sign):
    """A session of the model whose float weights of more than one element are moved."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and np.prod(tensor.dims) > 1:
            tensor.CopyFrom(numpy_helper.from_array(moved([numpy_helper.to_array(tensor)], sign)[0], tensor.name))
    return session(model.SerializeToString())


def movement(path, optimised, plain, arrays, outputs):
    """One number an output."""
    most = [0.0] * len(outputs)
    if any(map(can_move, arrays)):
        others = [run(optimised, moved(arrays, sign)) for sign in (1, -1)]
    else:
        others = [run(with_moved_weights(path, sign), arrays) for sign in (1, -1)]
    for other in [run(plain, arrays), *others]:
        most = [max(m, largest_gap(a, b)) for m, a, b in zip(most, outputs, other)]
    return most


def cpu_ms(model, arrays):
    """Median CPU time of a call, of up to 9 calls or a second."""
    times = []
    while len(times) < 9 and sum(times) < 1.0:
        begin = time.process_time()
        run(model, arrays)
        times.append(time.process_time() - begin)
    return float(np.median(times)) * 1e3
