"""`etc inspect --kernels=yaml` says of programs what the runtime's own build tool, gen_oplist, says of them: the hand-built ones of programs.c,
some that etc lowers and some of the official exporter; and of all together what the tool's lists are when they are merged.

usage: kernel_lists.py PTE_PROGRAMS ETC    (with a Python that has executorch; see with_runtime.sh)
Exit: 0 all right, 1 a difference.
"""

import contextlib
import glob
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import yaml
from executorch.codegen.tools.gen_oplist import gen_oplist
from executorch.exir import to_edge
from torchgen.selective_build.selector import merge_et_kernel_metadata

import read_official

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli", "data")
MODELS = {"mixed": ["--dim", "batch=1..3"], "mixed_xnnpack": ["--dim", "batch=1", "--backend", "xnnpack:min-ops=1"],
          "decoder": ["--derive", "llm:context=16,prefill=4"], "two_outputs": []}
OFFICIAL = ("mlp_batch", "cnn", "pieces")


def make_programs(pte_programs, etc, folder):
    subprocess.run([pte_programs, folder], check=True)
    for name, options in MODELS.items():
        model = os.path.join(DATA, name.split("_xnn")[0] + ".onnx")
        subprocess.run([etc, "lower", model, "-q", "-o", os.path.join(folder, name + ".pte"), *options], check=True)
    for name, module, inputs, dynamic, _ in read_official.cases():
        if name in OFFICIAL:
            exported = torch.export.export(module.eval(), inputs, dynamic_shapes=dynamic)
            Path(folder, f"official_{name}.pte").write_bytes(to_edge(exported).to_executorch().buffer)
    return sorted(glob.glob(os.path.join(folder, "*.pte")))


def ours(etc, programs):
    return yaml.safe_load(subprocess.run([etc, "inspect", "--kernels=yaml", *programs], check=True, capture_output=True).stdout)


def theirs(program, folder):
    out = Path(folder, "selected_operators.yaml")
    with contextlib.redirect_stdout(io.StringIO()):
        gen_oplist(out, model_file_path=program)
    return yaml.safe_load(out.read_text())


def merged(lists):
    """One list of several, as CMake builds with several programs would have to merge them."""
    whole = {**lists[0], "operators": {}, "et_kernel_metadata": {}}
    for one in lists:
        whole["et_kernel_metadata"] = merge_et_kernel_metadata(whole["et_kernel_metadata"], one["et_kernel_metadata"])
        for name, operator in one["operators"].items():
            before = whole["operators"].get(name, {"debug_info": []})["debug_info"]
            whole["operators"][name] = {**operator, "debug_info": before + operator["debug_info"]}
    return whole


def main():
    pte_programs, etc = sys.argv[1:3]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        programs = make_programs(pte_programs, etc, folder)
        lists = [theirs(program, folder) for program in programs]
        kernels = sum(len(one["et_kernel_metadata"]) for one in lists)
        for name, got, want in [*((os.path.basename(p), ours(etc, [p]), one) for p, one in zip(programs, lists)),
                                ("all of them", ours(etc, programs), merged(lists))]:
            print("ok  " if got == want else f"FAIL\n{got}\n{want}\n", name)
            failures += got != want
        print(f"kernel_lists: {len(programs) + 1 - failures} passed, {failures} failed, 0 skipped, {kernels} kernels")
    return 1 if failures or kernels < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
