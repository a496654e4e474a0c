#!/usr/bin/env python3
"""What messages tell the user to do can be done: every command in a message, a hint, an explanation or a help text runs,
prints what it is said to list, and every option named there exists.

  hints.py --etc build/release/etc
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ("schema", "src", "passes", "backends", "tools/etc")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
COMMAND = re.compile(r"'etc ((?:[^'\\]|\\.)*)'((?: \w+){0,4})")
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
COMMENT = re.compile(r"^\s*(//|/?\*)")
# "'etc X' lists the ...": a word that the output must hold, by what is said to be there.
SHOWN = {"commands": "lower", "options": "--dim", "backends": "xnnpack", "settings": "min-ops", "stages": "to_backend",
         "passes": "plan_memory", "codes": "E0317", "inputs": "'x'", "planners": "greedy", "operators": "Conv", "names": "dec/tanh",
         "which": "plan_memory", "how": "@NAME", "them": "xnnpack", "recipes": "xnnpack-int8", "it": "graph"}


def literals(path):
    """(line, text) of each string of a file; neighbours are one text, as for a compiler."""
    found = []
    with open(path) as f:
        source = f.read()
    source = "\n".join("" if COMMENT.match(line) else line for line in source.split("\n"))
    end = None
    for match in LITERAL.finditer(source):
        text = match.group(1).replace('\\n', ' ').replace('\\"', '"')
        if end is not None and not source[end:match.start()].strip():
            found[-1] = (found[-1][0], found[-1][1] + text)
        else:
            found.append((source.count("\n", 0, match.start()) + 1, text))
        end = match.end()
    return found


def files():
    for folder in FOLDERS:
        for top, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".def")):
                    yield os.path.join(top, name)


class Checker:
    def __init__(self, etc, work):
        self.etc, self.work, self.passed, self.failed = etc, work, 0, 0
        self.model = os.path.join(ROOT, "tests/cli/data/mixed.onnx")
        self.options = {"version"} | set(OPTION.findall("\n".join(self.run("help", c)[1] for c in self.commands())))
        self.pte = os.path.join(work, "model.pte")
        self.run("lower", self.model, "--dim", "batch=1", "-o", self.pte)
        self.done = {}

    def run(self, *args):
        done = subprocess.run([self.etc, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, cwd=self.work, timeout=60)
        return done.returncode, done.stdout

    def commands(self):
        return re.findall(r"^  (\w+) ", self.run("help")[1], re.M)

    def arguments(self, text):
        """The arguments with something in place of what stands for others; a name of a command alone asks for its help."""
        values = {"MODEL": self.model, "FILE": self.pte, "FILE.pte": self.pte, "COMMAND": "lower", "CODE": "E0317", "%s": "lower",
                  "M": self.model, "M.onnx": self.model}
        words = [values.get(word, word) for word in text.split()]
        if words == ["lower", "--help"] or len(words) == 1 and words[0] not in ("help", "passes", "backends", "ops", "version", "explain"):
            return ["help", words[0]]
        if words[:2] == ["recipe", "check"]:
            return [*words[:2], "xnnpack"]
        if words[0] == "why":
            words += ["--dim", "batch=1"]
        if words[0] in ("lower", "print"):
            words += [] if self.model in words else [self.model]
            words += ["--dim", "batch=1", "-o", os.path.join(self.work, "out.pte")]
            words += ["--backend", "xnnpack:min-ops=1"] if "--explain" in text else []
        return words

    def check(self, place, good, what):
        self.passed += good
        self.failed += not good
        if not good:
            print(f"FAIL {place}: {what}")

    def command(self, place, text, following):
        arguments = tuple(self.arguments(text))
        if arguments not in self.done:
            self.done[arguments] = self.run(*arguments)
        code, output = self.done[arguments]
        self.check(place, code == 0, f"'etc {text}' ends with {code}: {output[-200:]}")
        said = re.match(r" (?:lists|says|prints|shows|names) (?:all |the memory |the )?(\w+)", following)
        if said and said.group(1) in SHOWN:
            self.check(place, SHOWN[said.group(1)] in output, f"'etc {text}' does not list {said.group(1)}")
        elif said and said.group(1) not in ("what", "more"):
            self.check(place, False, f"'etc {text}' is said to list '{said.group(1)}', which this test does not know")

    def text(self, place, text):
        for match in COMMAND.finditer(text):
            self.command(place, match.group(1), match.group(2))
        for name in OPTION.findall(text):
            self.check(place, name in self.options, f"there is no option --{name}")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", required=True)
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="etc-hints-") as work:
        checker = Checker(os.path.abspath(args.etc), work)
        for path in files():
            for line, text in literals(path):
                checker.text(f"{os.path.relpath(path, ROOT)}:{line}", text)
    print(f"hints: {checker.passed} passed, {checker.failed} failed, 0 skipped")
    return 1 if checker.failed or not checker.passed else 0


if __name__ == "__main__":
    sys.exit(main())
