"""Lines on the terminal and the table docs/measurements/trained-models.md."""

import collections
import platform
import re

HEAD = ("model", "kind", "package", "nodes", "MB", "dims and options", "portable", "xnnpack", "largest error / allowed",
        "ONNX Runtime's own", "CPU ms: xnnpack / ONNX Runtime")

TEXT = """# Models as they are in the world

Trained models that packages of PyPI and npm carry, lowered by `etc`, run on the released ExecuTorch runtime and compared with what
ONNX Runtime computes from the `.onnx`. Written by `tests/wild/wild.py --write`, whose tables name each package with its version and
SHA-256; nothing of the packages is in this repository.

**portable**, **xnnpack**: `ok`, or what went wrong; `-`: not run. **largest error / allowed**: of the element, on both backends, that uses most of its
allowance of atol + rtol x |expected|: rtol 1e-3, atol the largest of 1e-4, 1e-5 of the output's largest element and 3 x ONNX Runtime's own
movement, 2e-2 each for float16 models. **ONNX Runtime's own**: how far that output moves there when the optimiser is turned off or the
inputs move by 1e-6 of their largest element (the float weights, where all inputs are ids). Integers must be equal. **CPU ms**: one call, median of up to 9, CPU time on one thread
({cpu}); the machine was busy, so a factor of 1.5 means little.

{figures}

"""


def status(row, backend):
    result = row["backends"].get(backend)
    if result is None:
        return "-"
    return "ok" if result["stage"] == "ok" else f"refused {result['code']}" if result["stage"] == "lower" else result["stage"]


def figures(row):
    """(error, allowed, movement) of the worst element on any backend, or None."""
    found = [r["figures"] for r in row["backends"].values() if r["figures"]]
    return max(found)[1:] if found else None


def passed(row):
    return bool(row["backends"]) and not row["wrong"] and all(r["stage"] == "ok" for r in row["backends"].values())


def line(row):
    name = row["name"]
    if row["skipped"] or row["wrong"]:
        return f"{'SKIPPED' if row['skipped'] else 'FAIL':8}{name:32} {row['skipped'] or row['wrong']}"
    text = ", ".join(f"{b} {status(row, b)}" for b in row["backends"])
    worst = figures(row)
    if worst:
        text += f", error {worst[0]:.2g} of {worst[1]:.2g} (own {worst[2]:.2g})"
    cpu = row["backends"].get("xnnpack", {}).get("cpu_ms")
    text += f", {cpu:.2f} ms (ort {row['reference_ms']:.2f})" if cpu else ""
    for backend, result in row["backends"].items():
        text += f"\n        {backend}: {result['code']} {result['message']}" if result["stage"] != "ok" else ""
    return f"{'ok' if passed(row) else 'FAIL':8}{name:32} {text}"


def cells(model, row):
    worst = figures(row)
    cpu = row["backends"].get("xnnpack", {}).get("cpu_ms")
    settings = [f"`{k}={v}`" for k, v in model.dims.items()] + [f"`{' '.join(model.options)}`"] * bool(model.options)
    return (model.name, model.kind, row["package"], row.get("nodes", "-"),
            f"{row['bytes'] / 1e6:.1f}" if "bytes" in row else "-", " ".join(settings).replace("|", "\\|"),
            "skipped" if row["skipped"] else status(row, "portable"), "skipped" if row["skipped"] else status(row, "xnnpack"),
            f"{worst[0]:.1e} / {worst[1]:.1e}" if worst else "-", f"{worst[2]:.1e}" if worst else "-",
            f"{cpu:.2f} / {row['reference_ms']:.2f}" if cpu else "-")


def processor():
    try:
        with open("/proc/cpuinfo") as f:
            return next(x.split(":", 1)[1].strip() for x in f if x.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def count(rows):
    good, skipped = sum(map(passed, rows)), sum(bool(r["skipped"]) for r in rows)
    return good, len(rows) - good - skipped, skipped


def written(path):
    """What the page says now: {model: cells of its row}, and the lines that say what is not right."""
    try:
        with open(path) as f:
            lines = f.read().splitlines()
    except FileNotFoundError:
        return {}, []
    rows = [[x.strip() for x in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("| ")]
    return {r[0]: r for r in rows if len(r) == len(HEAD)}, [x + "\n" for x in lines if x.startswith("- ")]


def outcome(row):
    """Of the cells of a row: skipped, right on both backends, right on the one that it was run on, or bad."""
    found = {row[HEAD.index("portable")], row[HEAD.index("xnnpack")]}
    return "skipped" if "skipped" in found else "both" if found == {"ok"} else "one" if found == {"ok", "-"} else "bad"


def write(path, results):
    """results: (model, row or None) of each model of the list. What was never run here stays as it is written."""
    before, failures = written(path)
    rows = [[str(x) for x in cells(m, r)] if r else before[m.name] for m, r in results if r or m.name in before]
    for model, row in results:
        if row:
            failures = [x for x in failures if not x.startswith((f"- {model.name}:", f"- {model.name} ("))]
            failures += [] if passed(row) else reasons(row)
    counts = collections.Counter(map(outcome, rows))
    total = (f"{len(rows)} models of {len({p for m, _ in results for p in m.packages})} packages: {counts['both']} right on both backends, "
             f"{counts['one']} right on the one that they were run on, {counts['bad']} not right, {counts['skipped']} skipped.")
    with open(path, "w") as f:
        f.write(TEXT.format(cpu=processor(), figures=total))
        f.write("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|\n")
        f.writelines("| " + " | ".join(r) + " |\n" for r in rows)
        f.write("\n## What is not right, and why\n\n" + "".join(failures) if failures else "")
    print(f"wrote {path}")


def reasons(row):
    if row["skipped"] or row["wrong"]:
        return [f"- {row['name']}: {row['skipped'] or row['wrong']}\n"]
    texts = {}
    for backend, r in row["backends"].items():
        if r["stage"] != "ok":
            texts.setdefault(f"{r['code']} {r['message']}".strip(), []).append(backend)
    return [f"- {row['name']} ({', '.join(b)}): {t[:400]}\n" for t, b in texts.items()]


def finish(rows):
    """The last lines; the exit status. Skipped models are named by what was not to be had, since nobody would miss them otherwise."""
    good, bad, skipped = count(rows)
    for reason in sorted({r["skipped"] for r in rows if r["skipped"]}):
        print(f"SKIPPED, NOT TESTED: {reason}")
    print(f"wild: {good} passed, {bad} failed, {skipped} skipped")
    return 1 if bad or not rows else 0
