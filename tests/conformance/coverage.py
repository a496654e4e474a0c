#!/usr/bin/env python3
"""Every ONNX operator is accounted for, and every translator is tested.

    tests/conformance/coverage.py

1. Each operator that the `onnx` package knows has a row in src/onnx/translators.def or src/onnx/out_of_reach.def.
2. Each operator of translators.def is a node of one of the package's test cases, or is named in a test of this tree
   (tests/unit, tests/onnx, tests/cli, tests/zoo, tests/conformance).
3. The rows of an operator in translators.def cover each version that it ever had, with as many inputs as that one may have.
4. Each row of src/onnx/limits.def is of a translated operator and has a case in tests/onnx/bad/limits.txt with its diagnostic.
"""

import collections
import glob
import os
import re
import sys
import warnings

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]

import onnx_cases  # noqa: E402

ROW = re.compile(r'^(?:ONNX|ONNX_OP|OUT_OF_REACH)\("([^"]*)", "([^"]*)"', re.M)


def rows(name):
    with open(os.path.join(ROOT, "src", "onnx", name)) as f:
        return set(ROW.findall(f.read()))


VERSIONS = re.compile(r'^ONNX(?:_OP)?\("([^"]*)", "([^"]*)", (\d+), (\d+), (\d+), (-?\d+)', re.M)
ANY = 1 << 30  # of versions and inputs: no bound


def uncovered_versions(refused):
    """What each version of a translated operator takes that its rows do not."""
    with open(os.path.join(ROOT, "src", "onnx", "translators.def")) as f:
        rows = collections.defaultdict(list)
        for domain, name, *numbers in VERSIONS.findall(f.read()):
            since, until, least, most = map(int, numbers)
            rows[domain, name].append((since, until or ANY, least, ANY if most < 0 else most))
    for schema in onnx.defs.get_all_schemas_with_history():
        operator, version = ("" if schema.domain == "ai.onnx" else schema.domain, schema.name), schema.since_version
        if operator in refused or schema.deprecated or operator not in rows:
            continue
        row = next((r for r in rows[operator] if r[0] <= version <= r[1]), None)
        if row is None:
            yield f"{label(operator)} of opset {version} has no row in translators.def"
        elif row[2] > schema.min_input or row[3] < min(schema.max_input, ANY):
            yield f"{label(operator)} of opset {version} takes {schema.min_input} to {schema.max_input} inputs, its row {row[2]} to {row[3]}"


def unshown_limits(translated):
    """Rows of limits.def without an operator or without a case that shows them."""
    with open(os.path.join(ROOT, "schema", "diags.def")) as f:
        codes = dict(re.findall(r'^DIAG\((\w+), "(E\d+)"', f.read(), re.M))
    with open(os.path.join(ROOT, "tests", "onnx", "bad", "limits.txt")) as f:
        shown = {(operator, code) for case in f.read().split("\n== ")[1:]
                 for operator in re.findall(r"^node \S+ (?:[\w.]+:)?(\w+) ", case, re.M) for code in re.findall(r"^expect (\w+)", case, re.M)}
    with open(os.path.join(ROOT, "src", "onnx", "limits.def")) as f:
        for domain, name, diagnostic in re.findall(r'^ONNX_LIMIT\("([^"]*)", "([^"]*)", (\w+)', f.read(), re.M):
            if (domain, name) not in translated:
                yield f"{label((domain, name))} of limits.def has no translator"
            elif (name, codes.get(diagnostic)) not in shown:
                yield f"the limit of {label((domain, name))} has no case in tests/onnx/bad/limits.txt that shows it"


def graph_operators(graph, found):
    for node in graph.node:
        found.add((node.domain if node.domain != "ai.onnx" else "", node.op_type))
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                graph_operators(inner, found)


def case_operators():
    found = set()
    for _, _, _, model, _ in onnx_cases.collect():
        graph_operators(model.graph, found)
        for function in model.functions:
            graph_operators(function, found)
    return found


def test_words():
    """All words of the tests that name operators in their text."""
    words = set()
    for pattern in ("unit/*.c", "onnx/**/*.txt", "onnx/**/*.test", "onnx/*.c", "cli/data/make.py", "zoo/*.py",
                    "conformance/operator*.py", "conformance/dynamic*.py",
                    "conformance/semantics*.py", "conformance/contrib*.py", "conformance/classic.py"):
        for path in glob.glob(os.path.join(ROOT, "tests", pattern), recursive=True):
            with open(path, errors="replace") as f:
                words.update(re.findall(r"\w+", f.read()))
    return words


def label(operator):
    return ".".join(filter(None, operator))


def main():
    warnings.simplefilter("ignore")
    known = {("" if s.domain == "ai.onnx" else s.domain, s.name) for s in onnx.defs.get_all_schemas()}
    translated, refused = rows("translators.def"), rows("out_of_reach.def")
    bad = [f"{label(o)} has no row in translators.def or out_of_reach.def" for o in sorted(known - translated - refused)]
    bad += [f"{label(o)} of out_of_reach.def is no operator of onnx {onnx.__version__}" for o in sorted(refused - known)]
    bad += [*uncovered_versions(refused), *unshown_limits(translated)]
    cases, words = case_operators(), test_words()
    bad += [f"{label(o)} is translated but in no test" for o in sorted(translated - cases) if o[1] not in words]
    for text in bad:
        print(f"coverage: {text}")
    total = len(known | translated)
    print(f"coverage: {total - len(bad)} passed, {len(bad)} failed, 0 skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
