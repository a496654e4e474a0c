#!/usr/bin/env python3
"""Tests of the command line: what is printed, exactly, and the exit code.

    tests/cli/run.py --etc build/release/etc               all cases
    tests/cli/run.py --etc build/release/etc -k 'lower*'   some of them
    tests/cli/run.py --etc build/release/etc --update      write what is printed to the .expected files; review the difference

A case is NAME.sh and NAME.expected. The script runs in an empty folder with $data, the folder of models and arrays, $plugins, that of
plug-ins (of the build; plugins/), and the function `t`, which runs etc and prints the command, its standard output, its standard error with "! " before each line, and its
exit code if it is not 0.
"""

import argparse
import difflib
import fnmatch
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PRELUDE = r"""
t() {
  printf '$ etc'; printf ' %s' "$@" | sed "s|$data/||g; s|$plugins/||g"; echo
  "$ETC" "$@" >"$capture/out" 2>"$capture/err"
  code=$?
  cat "$capture/out"
  sed 's/^/! /' "$capture/err"
  [ $code = 0 ] || echo "exit $code"
}
"""


def run(etc, plugins, path, timeout):
    with tempfile.TemporaryDirectory(prefix="etc-cli-") as top:
        # Paths in messages must not depend on the machine: the data are below the working folder.
        work, capture = os.path.join(top, "work"), os.path.join(top, "capture")
        os.mkdir(work)
        os.mkdir(capture)
        os.symlink(os.path.join(HERE, "data"), os.path.join(top, "data"))
        os.symlink(plugins, os.path.join(top, "plugins"))
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "ETC": etc, "data": "../data", "plugins": "../plugins", "capture": capture,
                       "LC_ALL": "C", "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""), "TERM": "dumb"}
        with open(path) as f:
            script = PRELUDE + f.read()
        done = subprocess.run(["/bin/sh", "-c", script], cwd=work, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        return done.stdout.decode(errors="replace") + (f"script exit {done.returncode}\n" if done.returncode else "")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", required=True)
    p.add_argument("--plugins", metavar="FOLDER", help="default: tests/cli/plugins beside etc")
    p.add_argument("-k", metavar="PATTERN", default="*")
    p.add_argument("--update", action="store_true")
    p.add_argument("--timeout", type=float, default=120)
    args = p.parse_args()
    plugins = args.plugins or os.path.join(os.path.dirname(args.etc), "tests", "cli", "plugins")
    passed = failed = 0
    for path in sorted(glob.glob(os.path.join(HERE, "*.sh"))):
        name = os.path.basename(path)[:-3]
        if not fnmatch.fnmatch(name, args.k):
            continue
        expected_path = path[:-3] + ".expected"
        got = run(os.path.abspath(args.etc), os.path.abspath(plugins), path, args.timeout)
        if args.update:
            with open(expected_path, "w") as f:
                f.write(got)
        expected = ""
        if os.path.exists(expected_path):
            with open(expected_path) as f:
                expected = f.read()
        if got == expected:
            passed += 1
            continue
        failed += 1
        print(f"FAIL {name}")
        sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), got.splitlines(True), "expected", "printed"))
    print(f"cli: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
