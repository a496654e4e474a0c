#!/usr/bin/env python3
"""Which released versions of the runtime run etc's programs: the models of build/zoo, by portable kernels and on XNNPACK,
compared with ONNX Runtime.

    tests/bench/versions.py --work DIR                  every version there is for this Python
    tests/bench/versions.py --work DIR 1.5.1 1.4.0      some

Each version is installed in a virtual environment of its own below --work, with the PyTorch that it asks for (gigabytes for older
ones), which is removed afterwards unless --keep is given. The results are added to docs/reference/runtimes.md.
"""

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "lib")]

import etc_command  # noqa: E402

DOCUMENT = os.path.join(ROOT, "docs", "reference", "runtimes.md")
BEGIN, END = "<!-- versions -->", "<!-- /versions -->"
HEAD = "| version | PyTorch | portable kernels | XNNPACK |\n|---|---|---|---|"
CLOSING = re.compile(r"^models: (\d+) passed, (\d+) failed", re.M)
# What the comparison itself needs; numpy as the version's PyTorch wants it.
TOOLS = ("numpy", "onnx", "onnxruntime")


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 1)[1],
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("versions", nargs="*", metavar="VERSION", help="versions of the package executorch")
    p.add_argument("--etc", default=etc_command.default_command(ROOT), help="the command under test")
    p.add_argument("--work", default=os.path.join(ROOT, "build", "versions"), help="where the environments are made")
    p.add_argument("-k", metavar="PATTERN,...", default="*", help="only these models (shell patterns)")
    p.add_argument("--keep", action="store_true", help="leave the environments")
    return p.parse_args()


def pip(python, *args):
    return subprocess.run([python, "-m", "pip", "--disable-pip-version-check", *args], capture_output=True, text=True)


def released():
    """The versions that there are wheels of, newest first."""
    listed = pip(sys.executable, "index", "versions", "executorch").stdout
    found = re.search(r"Available versions: (.*)", listed)
    if not found:
        sys.exit("versions: the package index does not list executorch")
    return found.group(1).split(", ")


def wanted_torch(python):
    """The series of PyTorch that the installed package was built with: the lowest that it takes; where it does not say, ours."""
    asked = subprocess.run([python, "-c", "import importlib.metadata as m; print(*m.requires('executorch'), sep='\\n')"],
                           capture_output=True, text=True).stdout
    lowest = re.search(r"^torch>=(\d+\.\d+)", asked, re.M)
    return f"torch=={lowest.group(1)}.*" if lowest else f"torch=={importlib.metadata.version('torch').split('+')[0]}"


def install(version, folder):
    """The Python of an environment with that version, and what is wrong with it, if anything is."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    done = pip(python, "install", "-q", "--no-deps", f"executorch=={version}")
    if done.returncode == 0:
        done = pip(python, "install", "-q", f"executorch=={version}", wanted_torch(python))
    if done.returncode == 0:
        done = pip(python, "install", "-q", *TOOLS)
    if done.returncode != 0:
        return python, "cannot be installed: " + done.stderr.strip().splitlines()[-1]
    imported = subprocess.run([python, "-c", "import torch; import executorch.runtime"], capture_output=True, text=True)
    if imported.returncode != 0:
        return python, "cannot be imported: " + imported.stderr.strip().splitlines()[-1]
    return python, None


def torch_version(python):
    shown = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    return shown.stdout.strip().split("+")[0] or "?"


def passed(python, etc, work, patterns, extra):
    """'44 of 44', of the models with stored outputs."""
    command = [python, os.path.join(ROOT, "tests", "conformance", "models.py"), "--etc", etc, "--work", work, "--floor", os.devnull,
               "-k", patterns, *extra]
    out = subprocess.run(command, capture_output=True, text=True)
    closing = CLOSING.search(out.stdout)
    if not closing:
        return "not run: " + (out.stdout + out.stderr).strip().splitlines()[-1]
    ok, failed = map(int, closing.groups())
    return f"{ok} of {ok + failed}"


def row(version, args):
    folder = os.path.join(args.work, version)
    python, fault = install(version, folder)
    if fault:
        cells = [torch_version(python), fault.replace("|", "\\|"), ""]
    else:
        cells = [torch_version(python)] + [passed(python, args.etc, os.path.join(args.work, version + "-" + name), args.k, extra)
                                           for name, extra in (("portable", []), ("xnnpack", ["--extra=--backend=xnnpack"]))]
    if not args.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return f"| {version} | " + " | ".join(cells) + " |"


def number(line):
    return tuple(int(x) for x in line.split("|")[1].strip().split("."))


def write(rows):
    """Puts the rows into the document's table, in the place of older ones of the same versions."""
    with open(DOCUMENT) as f:
        text = f.read()
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    kept = {number(line): line for line in table.strip().splitlines()[2:]}
    kept.update({number(line): line for line in rows})
    lines = [HEAD, *(kept[key] for key in sorted(kept, reverse=True))]
    with open(DOCUMENT, "w") as f:
        f.write(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)


def main():
    args = parse_arguments()
    os.makedirs(args.work, exist_ok=True)
    for version in args.versions or released():
        line = row(version, args)
        print(line, flush=True)
        write([line])


if __name__ == "__main__":
    main()
