#!/usr/bin/env python3
"""Which cases that pack_cases.py leaves out reach branches that ctest does not: the lines of cases/chosen.txt.

    cmake -S . -B build/branches -G Ninja -DETC_WERROR=OFF -DCMAKE_C_FLAGS="-O1 --coverage -DNDEBUG"
    cmake --build build/branches && ctest --test-dir build/branches -LE 'runtime|valgrind|browser|tools|package' -E 'chosen'
    .venv/bin/python -W ignore tests/onnx/choose_cases.py build/branches >tests/onnx/cases/chosen.txt

Each case is run by itself, and its branches are those whose counters in the .gcda files are not 0. Of all cases, those are taken
that bring most branches for their size, until none brings any, or too few for its size.
"""

import argparse
import gzip
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import onnx

import pack_cases

MOST_BYTES = 400000  # of a case before it is compressed
LARGE, WORTH = 12000, 2  # compressed bytes from which on a case must bring so many branches
PACKED_SIZE = 600  # what a case costs besides
FUNCTION, COUNTERS = 0x01000000, 0x01a10000  # tags of the records of a .gcda file (gcc/gcov-io.h)


def branches_of(path):
    """(function, index) of the counters that are not 0."""
    with open(path, "rb") as f:
        data = f.read()
    at, function = 16, 0
    while at + 8 <= len(data):
        tag, length = struct.unpack_from("<Ii", data, at)
        at += 8
        if tag == FUNCTION and length > 0:
            function = struct.unpack_from("<I", data, at)[0]
        if tag == COUNTERS and length > 0:  # a negative length: all are 0, and none is stored
            yield from ((function, i) for i, n in enumerate(struct.unpack_from(f"<{length // 8}Q", data, at)) if n)
        at += max(length, 0)


def all_branches(folder, prefix):
    found = set()
    for place, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(place, name)
            if name.endswith(".gcda"):
                found.update((path[len(prefix):], *b) for b in branches_of(path))
    return found


def left_out(table):
    """(name, bytes) of the cases of a table that are not packed."""
    make, pack, most = pack_cases.FILES[table]
    cases = make()
    packed = {c.name for c in pack_cases.choose(cases, most)}
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "model.onnx")
        for case in cases:
            if case.name in pack_cases.NOT_PACKED:
                continue
            try:
                onnx.save(case.model() if callable(case.model) else case.model, path)
                made = pack(case, path)
                data = made.pack() if made else b""
            except Exception:  # noqa: BLE001  the reference has no kernel
                continue
            if data and len(data) <= MOST_BYTES and not (case.name in packed and len(data) <= pack_cases.MOST_BYTES):
                yield case.name, data


def run(build, data, work, known):
    """What a case reaches of what is not known; nothing when it fails."""
    counts, path = os.path.join(work, "counts"), os.path.join(work, "case.gz")
    shutil.rmtree(counts, ignore_errors=True)
    with open(path, "wb") as f:
        f.write(gzip.compress(struct.pack("<8sI", b"ETCCASES", 1) + data, 1))
    for more in ([], ["--backend", "xnnpack:min-ops=1"]):
        done = subprocess.run([os.path.join(build, "tests", "onnx", "onnx_cases"), *more, path], capture_output=True,
                              env=dict(os.environ, GCOV_PREFIX=counts))
        if done.returncode != 0:
            return set()
    return all_branches(counts + build + "/src", counts + build) - known


def take(candidates):
    taken, reached = [], set()
    while candidates:
        best = max(candidates, key=lambda c: len(c[2] - reached) / (c[1] + PACKED_SIZE))
        candidates.remove(best)
        gain = len(best[2] - reached)
        if gain == 0:
            break
        if best[1] <= LARGE or gain >= WORTH:
            taken.append(best[0])
            reached |= best[2]
    return taken


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("build")
    build = os.path.abspath(p.parse_args().build)
    known, candidates = all_branches(build + "/src", build), []
    with tempfile.TemporaryDirectory(prefix="etc-choose-") as work:
        for table in pack_cases.FILES:
            for name, data in left_out(table):
                found = run(build, data, work, known)
                if found:
                    candidates.append((f"{table} {name}", len(gzip.compress(data, 9)), found))
    print(*sorted(take(candidates)), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
