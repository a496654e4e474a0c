#!/usr/bin/env python3
"""Runs every command that the documents show, as a reader would type it, section by section, on small files with the names used there.

    tests/run docs/commands                          all
    tests/run docs/commands -k 'README.md:*'         some: DOCUMENT:SECTION, shell patterns
    tests/run docs/commands --update                 writes into the documents what is printed now, where it differs

What runs: in a block of code, lines that begin with "etc", or with "$ ". After a line with "$ " stands what it prints, where only
"…" stands for anything; the exit status may be an error then, if the output shows one. A block whose first line is
"# NAME.yaml" is that file. A section with commands must have files in FILES.
"""

import argparse
import fnmatch
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]

import etc_command  # noqa: E402
import models  # noqa: E402

# The README, and all pages that tell how something is done.
DOCUMENTS = ["README.md"] + sorted(os.path.relpath(path, ROOT) for part in ("*.md", "tutorial/*.md", "guide/*.md")
                                   for path in glob.glob(os.path.join(ROOT, "docs", part)))
# Which function of models.py makes the files of a section; where they differ, of commands that hold a text.
FILES = {
    "README.md:etc": models.fixed_image,
    "README.md:A tour": {"mobilenet": models.mobilenet, "--dim batch": models.image, "": models.fixed_image},
    "README.md:What a failure looks like": models.acme,
    "docs/guide/models.md:State between calls": {"prefill": models.prefill, "": models.decoder},
    "docs/guide/models.md:Language models": models.language,
    "docs/guide/sizes-and-values.md:*":
        {"vad": models.voice, "speech": models.speech, "image:2": models.any_image, "n=1..8": models.sequences, "past + new": models.masked},
    "docs/guide/programs.md:Recipes": models.decoder,
    "docs/guide/programs.md:Constant methods": models.fixed_image,
    "docs/guide/programs.md:A lowered program as an operator": models.siamese,
    "docs/guide/plug-ins.md:*": models.plugins,
    "docs/guide/memory.md:*": models.fixed_image,
    "docs/guide/builds.md:*": models.fixed_image,
    "docs/guide/budgets.md:*": models.program,
    "docs/guide/firmware.md:*": models.program,
    "docs/guide/inspect.md:What became of an operator": models.fates,
    "docs/guide/inspect.md:Pictures": models.program,
    "docs/guide/inspect.md:Where the time goes": models.program,
    "docs/guide/inspect.md:*": models.fixed_image,
    "docs/guide/quantization.md:*": models.fixed_image,
    "docs/tutorial/*": models.digits,
}


class Command:
    """A line to run, where it stands, and what it must print (None: anything)."""

    def __init__(self, line, number, shown):
        self.line, self.number, self.shown = line, number, shown
        self.printed = None


def blocks(lines):
    """(number of the first line, lines) of each block of code: indented by four, or fenced."""
    block, begin, fence = [], 0, None
    for number, line in enumerate(lines, 1):
        if fence is None and line.startswith("```"):
            fence, block, begin = line, [], number + 1
        elif fence is not None and line.startswith("```"):
            yield begin, block
            fence, block = None, []
        elif fence is not None or line.startswith("    ") or (block and not line.strip()):
            begin = begin if block else number
            block.append(line if fence is not None else line[4:])
        elif block:
            yield begin, block
            block = []
    if block:
        yield begin, block


def sections(path):
    """(heading, number of its first line, lines) of each section."""
    with open(path) as f:
        lines = f.read().split("\n")
    heads, fenced = [], False
    for i, line in enumerate(lines):
        fenced ^= line.startswith("```")
        if not fenced and re.match(r"#+ ", line):
            heads.append(i)
    for i, end in zip(heads, heads[1:] + [len(lines)]):
        yield lines[i].lstrip("# "), i + 1, lines[i + 1:end]


def commands_of(lines, first):
    """The commands and the files of a section."""
    commands, files = [], {}
    for begin, block in blocks(lines):
        name = re.match(r"# (\S+\.ya?ml)$", block[0])
        if name:
            files[name.group(1)] = "\n".join(block) + "\n"
            continue
        shown = None
        for i, line in enumerate(block):
            if line.startswith("$ "):
                shown = []
                commands.append(Command(line[2:], first + begin + i, shown))
            elif shown is not None and line.strip():
                shown.append(line)
            elif re.match(r"etc ", line):
                commands.append(Command(line, first + begin + i, None))
                shown = None
    return commands, files


def matches(text, shown):
    """Whether the output is what is shown, in which "…" stands for any text and a line with it alone for any lines."""
    pattern = "".join("(?:.*\n)*" if line.strip() == "…" else re.escape(line).replace("…", ".*") + "\n" for line in shown)
    return re.fullmatch(pattern, text) is not None


def run(command, folder):
    """What is wrong with the command, or None."""
    done = subprocess.run(["sh", "-c", command.line], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    text = "".join(line + "\n" for line in done.stdout.splitlines() if line.strip())
    command.printed = text
    error_shown = any("error[" in line for line in command.shown or [])
    if (done.returncode != 0) != error_shown:
        return f"exit {done.returncode}\n{text}"
    if command.shown is not None and not matches(text, command.shown):
        return f"it prints\n{text}"
    return None


def update(path, commands):
    """Puts what was printed in the place of what is shown, where these differ."""
    with open(path) as f:
        lines = f.read().split("\n")
    for command in sorted(commands, key=lambda c: -c.number):
        if command.shown is None or command.printed is None or matches(command.printed, command.shown):
            continue
        begin = command.number  # the line after the command, as lines count from 1
        indent = lines[begin - 1][:lines[begin - 1].index("$ ")]
        lines[begin:begin + len(command.shown)] = [indent + line for line in command.printed.splitlines()]
    with open(path, "w") as f:
        f.write("\n".join(lines))


def maker(name, command):
    """The function that makes the files of a section for the command, or None."""
    for pattern, makers in FILES.items():
        if fnmatch.fnmatchcase(name, pattern):
            makers = makers if isinstance(makers, dict) else {"": makers}
            return next((make for text, make in makers.items() if text in command.line), None)
    return None


def check_section(name, path, commands, files):
    """What is wrong in a section."""
    faults, made = [], set()
    with tempfile.TemporaryDirectory() as folder:
        for file, text in files.items():
            with open(os.path.join(folder, file), "w") as f:
                f.write(text)
        for command in commands:
            make = maker(name, command)
            if make is None:
                fault = "no files for it: FILES in tests/docs/commands.py lacks a row"
            else:
                if make not in made:
                    make(folder)
                    made = {make}
                fault = run(command, folder)
            if fault is not None:
                faults.append(f"{path}:{command.number}: {command.line}\n{fault}")
    return faults


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--etc", default=etc_command.default_command(ROOT), help="the command under test")
    p.add_argument("-k", metavar="PATTERN", default="*", help="only these sections, DOCUMENT:SECTION")
    p.add_argument("--update", action="store_true", help="write what is printed into the documents")
    args = p.parse_args()
    os.environ["PATH"] = os.path.dirname(os.path.abspath(args.etc)) + os.pathsep + os.environ["PATH"]
    total, wrong = 0, 0
    for document in DOCUMENTS:
        ran = []
        for heading, first, lines in sections(os.path.join(ROOT, document)):
            name = f"{document}:{heading}"
            commands, files = commands_of(lines, first)
            if not commands or not fnmatch.fnmatchcase(name, args.k):
                continue
            faults = check_section(name, document, commands, files)
            ran += commands
            wrong += len(faults)
            for fault in faults:
                print("FAIL " + fault)
        total += len(ran)
        if args.update:
            update(os.path.join(ROOT, document), ran)
    print(f"documents: {total - wrong} commands passed, {wrong} failed, 0 skipped")
    return 0 if total and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
