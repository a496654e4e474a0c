#!/usr/bin/env python3
"""`etc why --all` on real models: every operator has a fate, and it is the one that the program tells.

    tests/conformance/why.py                      some models of build/zoo, on kernels and on XNNPACK
    tests/conformance/why.py -k 'vit*,gpt2'       others

Each operator of the model's graph is told of, with a known fate. An operator that `etc lower --map` has at an instruction
is one that runs, and `etc why` names that instruction; what is told to be read, computed or removed is at none. Each node
of a delegate has a debug handle, by which the map tells the operator that it is of.
"""

import argparse
import fnmatch
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]

import delegates  # noqa: E402
import etc_command  # noqa: E402
import models  # noqa: E402

MODELS = "albert,bert_dynamo,conformer,crnn_ocr,deeplab,densenet,gpt2_kv,gru_text,lenet,llama_kv,mobilenet_v2,resnet18,state_space*,vit*,yolo*"
RUNS = {"delegate", "kernel", "control"}
FATES = RUNS | {"view", "constant", "input", "state", "import", "folded", "removed"}


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog=__doc__.split("\n", 2)[2],
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", default=os.path.join(ROOT, "build", "zoo"), help="folder of model folders")
    p.add_argument("--etc", default=etc_command.default_command(ROOT), help="the command under test")
    p.add_argument("-k", metavar="PATTERN,...", default=MODELS, help="these models (shell patterns)")
    p.add_argument("--timeout", type=float, default=300.0)
    return p.parse_args()


def key_of(node):
    return (node.get("scope", ""), node.get("node", node.get("name", "")), node.get("op", ""), node.get("index", -1))


def instructions_of(path):
    """{operator: instructions} of the file of --map."""
    found = {}
    with open(path) as f:
        for method in json.load(f)["methods"]:
            for instruction in method["instructions"]:
                for node in instruction["nodes"]:
                    found.setdefault(key_of(node), set()).add(instruction["index"])
    return found


# Of some types of XNode (executorch 1.4.1, backends/xnnpack/serialization/schema.fbs): operators that are made of them.
XNODE_OPERATORS = {3: {"Softmax", "Attention", "Where"}, 13: {"Conv"}, 14: {"MaxPool", "ReduceMax", "LogSoftmax"},
                   21: {"ArgMax", "ArgMin"}, 25: {"LeakyRelu"}, 29: {"Elu"}, 31: {"PRelu"}, 47: {"Cos"}}


def wrong_handles(path, map_file):
    """What is wrong with the debug handles of a program's delegates."""
    with open(map_file) as f:
        instructions = json.load(f)["methods"][0]["instructions"]
    for index, nodes in delegates.called_nodes(path).items():
        operators = {}
        for node in instructions[index]["nodes"]:
            for handle in node.get("debug_handles", []):
                operators.setdefault(handle, set()).add(node["op"])
        for kind, handle in nodes:
            if handle not in operators:
                yield f"instruction {index}: debug handle {handle} is of no operator"
            elif not operators[handle] & XNODE_OPERATORS.get(kind, operators[handle]):
                yield f"instruction {index}: debug handle {handle}, of an XNode of type {kind}, is of {operators[handle]}"


def told_instructions(told):
    return {i for end in told["program"] if "instruction" in end for i in range(end["instruction"], end["instruction"] + end["instructions"])}


def faults_of(told, mapped):
    """What is wrong with what is told of one operator."""
    fates = set(told["fate"])
    if not fates or not fates <= FATES:
        return f"fate {told['fate']}"
    at = mapped.get(key_of(told), set())
    if at and not fates & RUNS:
        return f"fate {told['fate']}, but the map has it at instructions {sorted(at)}"
    missing = at - told_instructions(told)
    return f"instructions {sorted(missing)} of the map are not told" if missing else None


def check(args, model, extra, work):
    """Messages of what is wrong; None where the model is not lowered."""
    import onnx

    dims = [f"--dim={k}={v}" for k, v in model.dims(model.cases[0][1]).items()]
    map_file = os.path.join(work, "map.json")
    program = os.path.join(work, "x.pte")
    lowered = etc_command.run([args.etc, "lower", model.path, "-o", program, "--map", map_file, *dims, *extra], args.timeout)
    if lowered.code in etc_command.EXIT_REFUSED:
        return None
    result = etc_command.run([args.etc, "why", model.path, "--all", "--json", *dims, *extra], args.timeout)
    if result.code != 0:
        return [f"exit {result.code}: {result.summary()[1]}"]
    told = [json.loads(line) for line in result.stdout.splitlines()]
    known = {key_of(x) for x in told}
    mapped = instructions_of(map_file)
    bad = [f"'{x['node']}' ({x['op']}, node {x['index']}): {fault}" for x in told if (fault := faults_of(x, mapped))]
    for i, node in enumerate(onnx.load(model.path, load_external_data=False).graph.node):
        if ("", node.name, node.op_type, i) not in known:
            bad.append(f"'{node.name}' ({node.op_type}, node {i}) is not told of")
    return bad + list(wrong_handles(program, map_file))


def main():
    args = parse_arguments()
    patterns = args.k.split(",")
    names = sorted(x for x in os.listdir(args.models) if any(fnmatch.fnmatch(x, p) for p in patterns) and not x.endswith("_sizes"))
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            model = models.Model(os.path.join(args.models, name))
            for extra in ([], ["--backend=xnnpack"]):
                bad = check(args, model, extra, work)
                for message in (bad or [])[:5]:
                    print(f"{name}{' on xnnpack' if extra else ''}: {message}")
                skipped, failed, passed = skipped + (bad is None), failed + bool(bad), passed + (bad == [])
    print(f"why: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
