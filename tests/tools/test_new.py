#!/usr/bin/env python3
"""tools/new-op and tools/new-pass: what they write compiles, keeps the rules of tools/lint and the format, and nothing is written twice.

    tests/tools/test_new.py --source .
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

COPIED = ("CMakeLists.txt", ".clang-format", "src", "passes", "backends", "schema", "include", "recipes", "tools", "cmake")
MADE = ("src/ops/doubled.c", "src/ops/twice.c", "passes/core/decompose_doubled.c", "passes/source/keep_first.c",
        "passes/to_backend/keep_one.c", "passes/executorch/keep_last.c")
CHANGED = ("passes/core/decompose.c", "backends/xnnpack/xnnpack.c")
TESTS = ("tests/unit/test_ops_doubled.c", "tests/unit/test_ops_twice.c", "tests/passes/core/decompose_doubled.etir",
         "tests/passes/source/keep_first.etir", "tests/passes/to_backend/keep_one.etir", "tests/passes/executorch/keep_last.etir")
DONE = (["new-op", "doubled"], ["new-op", "twice", "--out", "aten::twice.out", "--doc", "A \"quoted\" line"],
        ["new-pass", "keep_first", "source", "--before", "fold_constants"], ["new-pass", "keep_one", "to_backend", "--for-backends"],
        ["new-pass", "keep_last", "to_executorch"])
REFUSED = ((["new-op", "doubled"], "an op 'doubled' already"), (["new-op", "Doubled"], "small letters"),
           (["new-op", "half", "--out", "half"], "NAMESPACE::NAME"), (["new-pass", "keep_first", "edge"], "a pass 'keep_first' already"),
           (["new-pass", "keep-first", "edge"], "small letters"), (["new-pass", "keep", "core", "--before", "observe"], "its passes: decompose"))


def run(command, folder, status=0):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode != status:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def contents(root):
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            with open(os.path.join(folder, name), "rb") as f:
                found[os.path.join(folder, name)] = f.read()
    return found


def compile_made(root):
    build = os.path.join(root, "build")
    run(["cmake", "-S", root, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DETC_WERROR=ON", "-DETC_TESTS=OFF", "-DETC_INSTALL=OFF"],
        root)
    targets = run(["ninja", "-C", build, "-t", "targets", "all"], root).splitlines()
    objects = []
    for path in MADE + CHANGED:
        ending = path.split("/", 1)[1] + ".o"
        found = [line.split(":")[0] for line in targets if line.split(":")[0].endswith("/" + ending)]
        if not found:
            sys.exit(f"CMake does not know {path}")
        objects += found
    run(["ninja", "-C", build, *objects], root)
    print(f"{len(objects)} objects compiled")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True)
    source = os.path.abspath(parser.parse_args().source)
    with tempfile.TemporaryDirectory() as root:
        for name in COPIED:
            path = os.path.join(source, name)
            if os.path.isdir(path):
                shutil.copytree(path, os.path.join(root, name))
            elif os.path.exists(path):
                shutil.copy(path, root)
        for path in TESTS:
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        for command in DONE:
            run([sys.executable, os.path.join(root, "tools", command[0]), *command[1:]], root)
        lost = [path for path in MADE + TESTS if not os.path.exists(os.path.join(root, path))]
        if lost:
            sys.exit(f"not written: {', '.join(lost)}")
        before = contents(root)
        for command, part in REFUSED:
            text = run([sys.executable, os.path.join(root, "tools", command[0]), *command[1:]], root, status=1)
            if part not in text:
                sys.exit(f"{' '.join(command)}: expected '{part}' in: {text}")
        if contents(root) != before:
            sys.exit("a command that was refused changed the tree")
        written = [path for path in MADE + CHANGED + TESTS + ("passes/core/decompose.h",) if path.endswith((".c", ".h"))]
        run([sys.executable, "tools/lint", *written], root)
        run(["clang-format-14", "--dry-run", "-Werror", *written], root)
        compile_made(root)
    print(f"{len(DONE)} commands wrote, {len(REFUSED)} were refused")


if __name__ == "__main__":
    main()
