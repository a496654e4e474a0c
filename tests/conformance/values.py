"""A second set of values for the ONNX backend cases: same shapes and dtypes, other numbers, other expected outputs.

Whoever bakes a test's input into the program passes with the stored values and fails here.

Inputs are drawn from what is stored, so that they stay in the domain of the op (probabilities, positive variances,
valid indices): floats are blends of two shuffles of the stored ones, integers and booleans are shuffled, single
integers move a little. Integer inputs include axes, shapes and the like, so a draw can be invalid or ask for another
output shape; a reference decides. A draw counts when
- a reference that reproduces the stored outputs from the stored inputs accepts it,
- its outputs have the stored shapes, which are the declared ones,
- ONNX Runtime and the reference evaluator agree, if both are to be trusted.
Of several draws the one that changes most inputs is taken. Cases without any are returned with the reason. Processes of their own
draw, because ONNX Runtime ends its process on, say, an integer division by zero; the cases behind that one go on in another.
"""

import json
import multiprocessing
import multiprocessing.connection
import os
import time
import warnings
import zlib

import numpy as np

import arrays

FORMAT = 3
# The first draws move every input, the next ones about half of them, the last ones no integers.
ALL_INPUTS, SOME_INPUTS, ATTEMPTS = 6, 18, 22
BUDGET, TIMEOUT = 8.0, 120.0  # seconds for a case: start no further draw; give up
BATCH = 50  # cases that a process draws for
# A depth may be a float, but a fraction has no meaning.
KEEP_SINGLE_FLOATS = {"OneHot"}
# Repeated indices have no defined result here, and a shuffle can make some.
KEEP_INTEGERS = {"Scatter", "ScatterElements", "ScatterND", "MaxUnpool", "TensorScatter"}


def prepare(cases, cache_root, jobs):
    """({case: {"bundle": path, "atol": absolute tolerance}}, {case: reason})"""
    import onnx
    import onnxruntime

    cache = os.path.join(cache_root, f"values2-onnx{onnx.__version__}-ort{onnxruntime.__version__}-{FORMAT}")
    os.makedirs(cache, exist_ok=True)
    missing = [c for c in cases if not os.path.exists(answer_path(cache, c))]
    if missing:
        print(f"drawing second values for {len(missing)} cases", flush=True)
        run_forked(missing, cache, jobs)
    good, reasons = {}, {}
    for case in cases:
        with open(answer_path(cache, case)) as f:
            answer = json.load(f)
        if answer["reason"]:
            reasons[case["name"]] = answer["reason"]
        else:
            good[case["name"]] = {"bundle": os.path.join(cache, case["name"] + ".pkl"), "atol": answer["atol"]}
    return good, reasons


class Batch:
    """A forked process that draws values for some cases, in their order."""

    def __init__(self, context, cases, cache):
        self.cases, self.at, self.seen = cases, context.Value("i", 0), 0
        self.process = context.Process(target=draw_cases, args=(cases, cache, self.at))
        self.deadline = time.monotonic() + TIMEOUT
        self.process.start()

    def fault(self):
        """None as long as it runs and is not too long at one case; '' when it has drawn for all; else what ended it, at the case cases[at]."""
        if self.seen != self.at.value:
            self.seen, self.deadline = self.at.value, time.monotonic() + TIMEOUT
        if self.process.exitcode is None and time.monotonic() < self.deadline:
            return None
        reason = "the references take too long" if self.process.exitcode is None else "a reference crashed"
        self.process.kill()
        self.process.join()
        return reason if self.at.value < len(self.cases) else ""


def run_forked(cases, cache, jobs):
    context = multiprocessing.get_context("fork")
    import onnx.reference  # noqa: F401  imported once, before the forks
    import onnxruntime  # noqa: F401

    light = [[c] for c in cases if c["kind"] == "light"]
    others = [c for c in cases if c["kind"] != "light"]
    waiting = light + [others[i:i + BATCH] for i in range(0, len(others), BATCH)]
    running = []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(Batch(context, waiting.pop(0), cache))
        multiprocessing.connection.wait([x.process.sentinel for x in running], timeout=1.0)
        for batch in list(running):
            if (reason := batch.fault()) is None:
                continue
            running.remove(batch)
            case, *rest = batch.cases[batch.at.value:] or [None]
            waiting += [rest] if rest else []
            # A crash after a good draw was written does not take it back.
            if reason and not os.path.exists(answer_path(cache, case)):
                write_answer(cache, case, reason)


def answer_path(cache, case):
    return os.path.join(cache, case["name"] + ".json")


def write_answer(cache, case, reason, atol=0.0):
    path = answer_path(cache, case)
    fresh = f"{path}.{os.getpid()}"
    with open(fresh, "w") as f:
        json.dump({"reason": reason, "atol": atol}, f)
    os.replace(fresh, path)


def draw_cases(cases, cache, at):
    """In the forked process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for i, case in enumerate(cases):
        draw_case(case, cache)
        at.value = i + 1


def draw_case(case, cache):
    inputs, stored = arrays.load_bundle(os.path.join(case["dir"], "data.pkl"))
    reason = find(case, inputs, stored, lambda drawn, expected: write_draw(cache, case, drawn, expected))
    if reason:
        write_answer(cache, case, reason)


def write_draw(cache, case, drawn, expected):
    path = os.path.join(cache, case["name"] + ".pkl")
    fresh = f"{path}.{os.getpid()}"
    arrays.save_bundle(fresh, drawn, expected)
    os.replace(fresh, path)
    write_answer(cache, case, "", absolute_tolerance(case["atol"], expected))


def absolute_tolerance(atol, expected):
    """The stored values were chosen without cancellation; fresh ones meet it, so that a few roundings of the largest
    output must be allowed next to zero."""
    import ml_dtypes

    for array in expected:
        if array.dtype.kind == "f" or array.dtype == arrays.BF16:
            finite = np.abs(array.astype(np.float64)[np.isfinite(array.astype(np.float64))])
            if finite.size:
                atol = max(atol, 4 * float(ml_dtypes.finfo(array.dtype).eps) * float(finite.max()))
    return atol


def find(case, inputs, stored, accept):
    """Calls accept(inputs, outputs) for the first draw that counts and for each better one. Returns the reason if
    there is none, else ''."""
    if not any(x.size for x in inputs):
        return "there is no input to change"
    references = [r for r in make_references(case) if reproduces(r, case, inputs, stored)]
    if not references:
        return "no reference reproduces the stored outputs"
    best, most, begin = 0, sum(x.size > 0 for x in inputs), time.monotonic()
    for attempt in range(ATTEMPTS):
        if time.monotonic() - begin > BUDGET and attempt > 0:
            break
        rng = np.random.default_rng(zlib.crc32(f"{case['name']} {attempt}".encode()))
        drawn = [draw(x, rng, case, attempt) for x in inputs]
        changed = sum(not arrays.same_bits(a, b) for a, b in zip(drawn, inputs))
        if 2 * changed <= best:
            continue
        outputs = agreed(references, case, drawn, stored)
        if outputs is None:
            continue
        # A draw that changes the outputs is worth more than one more changed input.
        score = 2 * changed + any(not arrays.same_bits(a, b) for a, b in zip(outputs, stored))
        if score > best:
            best = score
            accept(drawn, outputs)
        if changed == most:
            break
    return "" if best else "no other valid values found"


def draw(array, rng, case, attempt):
    floating = array.dtype.kind == "f" or array.dtype == arrays.BF16
    integers_stay = attempt >= SOME_INPUTS or KEEP_INTEGERS & set(case["ops"])
    if array.size == 0 or not floating and integers_stay:
        return array
    if ALL_INPUTS <= attempt < SOME_INPUTS and rng.random() < 0.5:
        return array
    if not floating:
        return draw_single_integer(array, rng, attempt) if array.size == 1 else shuffle(array, rng)
    wide = array.astype(np.float64)
    if not np.isfinite(wide).all():
        return shuffle(array, rng)
    if array.size == 1 and KEEP_SINGLE_FLOATS & set(case["ops"]):
        return array
    if wide.min() == wide.max():
        return array if attempt == ATTEMPTS - 1 else (wide * rng.uniform(0.8, 1.0, wide.shape)).astype(array.dtype)
    if np.all(wide == np.round(wide)):
        return shuffle(array, rng)
    part = rng.uniform(0.0, 0.4)
    blend = shuffle(wide, rng) * (1.0 - part) + shuffle(wide, rng) * part
    return np.clip(blend, wide.min(), wide.max()).astype(array.dtype)


def shuffle(array, rng):
    flat = array.reshape(-1)
    return flat[rng.permutation(flat.size)].reshape(array.shape)


def draw_single_integer(array, rng, attempt):
    """A little up or down. Zero, which is where divisors and steps end, only when the draws without it are done."""
    if array.dtype == np.bool_:
        return ~array if rng.random() < 0.5 else array
    value = int(array.reshape(-1)[0])
    info = np.iinfo(array.dtype)
    other = value + int(rng.choice([-3, -2, -1, 1, 2]))
    if other == 0 and attempt < ALL_INPUTS or not info.min <= other <= info.max:
        other = value
    return np.full(array.shape, other, array.dtype)


def make_references(case):
    """Functions from inputs to outputs; those that cannot be made are left out."""
    made = []
    for make in (onnx_runtime, reference_evaluator):
        if case["kind"] == "light" and make is reference_evaluator:
            continue  # convolutions in Python loops
        try:
            made.append(make(case))
        except Exception:
            continue
    return made


def onnx_runtime(case):
    import onnxruntime

    import onnx_runtime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnx_runtime.Session(os.path.join(case["dir"], "model.onnx"), options)
    return lambda inputs: session.run(None, dict(zip(case["inputs"], inputs)))


def reference_evaluator(case):
    import onnx
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(onnx.load(os.path.join(case["dir"], "model.onnx")))
    return lambda inputs: evaluator.run(None, dict(zip(case["inputs"], inputs)))


def evaluate(reference, inputs):
    try:
        return [arrays.own(np.asarray(x)) for x in reference([arrays.own(x) for x in inputs])]
    except Exception:
        return None


def reproduces(reference, case, inputs, stored):
    outputs = evaluate(reference, inputs)
    return outputs is not None and arrays.compare_all(outputs, stored, case["rtol"], case["atol"]) is None


def agreed(references, case, inputs, stored):
    results = [r for r in (evaluate(x, inputs) for x in references) if r is not None]
    if len(results) != len(references):
        return None
    shape = [(x.shape, x.dtype) for x in stored]
    if any([(x.shape, x.dtype) for x in result] != shape for result in results):
        return None
    atol = absolute_tolerance(case["atol"], results[0])
    if any(arrays.compare_all(other, results[0], case["rtol"], atol) is not None for other in results[1:]):
        return None
    return results[0]
