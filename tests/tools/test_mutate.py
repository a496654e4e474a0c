#!/usr/bin/env python3
"""tools/mutate on a program of two functions, one of which is tested well: it must find the other, and change nothing.

    tests/tools/test_mutate.py --mutate tools/mutate
"""

import argparse
import os
import subprocess
import sys
import tempfile
import textwrap

FILES = {
    "CMakeLists.txt": """
        cmake_minimum_required(VERSION 3.16)
        project(planted C)
        enable_testing()
        add_library(library STATIC src/strong.c src/weak.c)
        set_target_properties(library PROPERTIES OUTPUT_NAME etc ARCHIVE_OUTPUT_DIRECTORY src)
        add_executable(planted main.c)
        target_link_libraries(planted PRIVATE library)
        add_test(NAME unit/planted COMMAND planted)
        """,
    "main.c": """
        #include <stdbool.h>
        bool strong(int x);
        bool weak(int x);
        int main(void) { return !(strong(3) && !strong(2) && !strong(6) && strong(5) && weak(5)); }
        """,
    "src/strong.c": """
        #include <stdbool.h>
        bool strong(int x);
        bool strong(int x) {
          return x > 2 && x < 6;
        }
        """,
    "src/weak.c": """
        #include <stdbool.h>
        bool weak(int x);
        bool weak(int x) { /* x == 1 in a comment is no code */
          while (x > 100)
            x -= 7;
          return x > 4;
        }
        """,
}


def mutate(tool, folder, *more):
    done = subprocess.run([sys.executable, tool, "--source", folder, *more], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def contents(folder):
    found = {}
    for path in FILES:
        with open(os.path.join(folder, path)) as f:
            found[path] = f.read()
    return found


def wrong(tool, folder):
    """None, or what is wrong."""
    before = contents(folder)
    code, text = mutate(tool, folder, "--only", "src/strong.c")
    if code != 0 or "mutate: 100.0 % killed" not in text:
        return "mutants of what is tested well survive:\n" + text
    if "survived " in text or text.count("killed    src/strong.c:4 comparison") < 4:
        return "comparisons are missing:\n" + text
    code, text = mutate(tool, folder, "--count", "8", "--folder", "src", "--seed", "3")
    again = mutate(tool, folder, "--count", "8", "--folder", "src", "--seed", "3", "--list")
    if code != 1 or "survived  src/weak.c" not in text or "  + " not in text:
        return "the weak test is not found:\n" + text
    if again != mutate(tool, folder, "--count", "8", "--folder", "src", "--seed", "3", "--list"):
        return "a seed does not give the same mutants"
    if "in a comment" in mutate(tool, folder, "--only", "src/weak.c", "--list")[1].replace("{ /* x == 1", ""):
        return "a comment was changed"
    if contents(folder) != before:
        return "the sources were changed"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--mutate", required=True)
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="etc-mutate-") as folder:
        for path, text in FILES.items():
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "w") as f:
                f.write(textwrap.dedent(text).lstrip())
        message = wrong(args.mutate, folder)
    print("FAIL " + message if message else "mutate: 1 passed, 0 failed, 0 skipped")
    return 1 if message else 0


if __name__ == "__main__":
    sys.exit(main())
