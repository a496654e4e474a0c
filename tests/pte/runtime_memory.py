"""The bytes that 'etc embed' says a method takes of the runtime's allocators are those that it takes, to the byte: measured by a host that is
compiled against the headers of the runtime's wheel and runs on its library, on programs of programs.c, of etc and of the official exporter.

usage: runtime_memory.py PTE_PROGRAMS ETC    (with a Python that has executorch; see with_runtime.sh)
Exit: 0 all right, 1 a difference.
"""

import ctypes
import mmap
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
from executorch.extension.pybindings import _portable_lib
from onnx import TensorProto, helper

import kernel_lists

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = Path(_portable_lib.__file__)
INCLUDE = LIBRARY.parents[2] / "include"
NAME = re.compile(r'#define A_PTE_(\w+)_NAME "(.*)"')


def build(folder):
    host = os.path.join(folder, "measure.so")
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-DC10_USING_CUSTOM_GENERATED_MACROS",
                    "-isystem", INCLUDE, "-isystem", INCLUDE / "executorch/runtime/core/portable_type/c10", os.path.join(HERE, "measure.cpp"),
                    "-o", host, f"-L{LIBRARY.parent}", f"-l:{LIBRARY.name}"], check=True)
    return ctypes.CDLL(host)


def topk(path):
    """The portable kernel that takes temporary memory while it runs."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=1)], "topk", [info("x", TensorProto.FLOAT, [3, 100])],
                              [info("v", TensorProto.FLOAT, [3, 5]), info("i", TensorProto.INT64, [3, 5])],
                              [helper.make_tensor("k", TensorProto.INT64, [1], [5])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def said(etc, program, folder):
    """(method, bytes of the method allocator, of the temporary one), for pointers of 8 bytes."""
    subprocess.run([etc, "embed", program, "-q", "-o", os.path.join(folder, "x.S"), "--name", "a_pte"], check=True)
    header = Path(folder, "x.h").read_text()
    for macro, name in NAME.findall(header):
        yield name, *(int(re.search(rf"#define A_PTE_{macro}_{what}_BYTES .* : (\d+)\)", header)[1]) for what in ("METHOD", "TEMP"))


def took(host, program, name, execute):
    """(error, bytes, bytes) of the runtime."""
    method, temp = ctypes.c_size_t(), ctypes.c_size_t()
    with open(program, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY) as data:
        held = ctypes.c_char.from_buffer(data)
        error = host.measure(ctypes.byref(held), ctypes.c_size_t(len(data)), name.encode(), execute, ctypes.byref(method), ctypes.byref(temp))
        del held
    return error, method.value, temp.value


def main():
    pte_programs, etc = sys.argv[1:3]
    failures = looked = 0
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as work:
        host = build(work)
        programs = kernel_lists.make_programs(pte_programs, etc, folder)
        topk(os.path.join(work, "topk.onnx"))
        subprocess.run([etc, "lower", os.path.join(work, "topk.onnx"), "-q", "-o", os.path.join(work, "topk.pte")], check=True)
        for program in [*programs, os.path.join(work, "topk.pte")]:
            delegated = b"XnnpackBackend" in Path(program).read_bytes()
            for name, method, temp in said(etc, program, work):
                error, method_took, temp_took = took(host, program, name, program.endswith("topk.pte"))
                # A backend takes of the method allocator what it likes.
                wrong = error or temp_took != temp or (method_took <= method if delegated else method_took != method)
                failures += bool(wrong)
                looked += 1
                if wrong:
                    print(f"FAIL {os.path.basename(program)} {name}: error {error}, {method_took} and {temp_took} bytes, said {method} and {temp}")
    print(f"runtime_memory: {looked - failures} passed, {failures} failed, 0 skipped")
    return 1 if failures or looked < 15 else 0


if __name__ == "__main__":
    sys.exit(main())
