"""The second witness: `etc run` on a program, compared with what the real runtime has to compute as well."""

import os

import arrays
import etc_command


def results(etc, program, inputs, outputs, folder, timeout=60.0, extra=()):
    """What `etc run` computes, in the order of the outputs, and None; or None and a sentence. inputs, outputs: lists of
    (name, array), of outputs for their names and types; folder takes files; extra: further arguments of `etc run`."""
    feeds = {}
    for i, (name, array) in enumerate(inputs):
        feeds[name] = os.path.join(folder, f"interp_in_{i}.npy")
        arrays.save_npy(feeds[name], array)
    out = os.path.join(folder, "interp")
    os.makedirs(out, exist_ok=True)
    result = etc_command.run_model(etc, program, feeds, out, extra, timeout)
    if result.code != 0:
        return None, f"exit {result.code}: {result.summary()[1]}"
    got = []
    for i, (name, want) in enumerate(outputs):
        places = [os.path.join(out, x + ".npy") for x in (name, name.replace("/", "_"), f"output_{i}")]
        path = next((x for x in places if os.path.isfile(x)), None)
        if path is None:
            return None, f"no file for output {i} '{name}' among {sorted(os.listdir(out))}"
        got.append(arrays.load_npy(path, want.dtype))
    return got, None


def disagreement(etc, program, inputs, outputs, folder, rtol, atol, timeout=60.0, extra=()):
    """None if `etc run` gives the outputs, else a sentence."""
    got, wrong = results(etc, program, inputs, outputs, folder, timeout, extra)
    return wrong or arrays.compare_all(got, [want for _, want in outputs], rtol, atol)
