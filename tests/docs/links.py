#!/usr/bin/env python3
"""Follows every link of the documents within the repository, and compares the pages of docs/ with docs/SUMMARY.md.

    tests/run docs/links

A link leads to a file or folder that is there and, behind "#", to a heading of it, by the names that GitHub gives headings.
Every page of docs/ is in docs/SUMMARY.md once. What a ```diff of HACKING.md leaves as it is (after a line with the name of a file, rows of tables)
is in that file.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUMMARY = "docs/SUMMARY.md"


def outside_code(path):
    """The lines of a document that are not in a fenced or indented block, without code between backquotes."""
    fenced = False
    with open(os.path.join(ROOT, path)) as f:
        for line in f:
            if line.startswith("```"):
                fenced = not fenced
            elif not fenced and not line.startswith("    "):
                yield line


def anchors(path):
    """The names of the headings of a document."""
    names = []
    for line in outside_code(path):
        if match := re.match(r"#+ (.*)", line):
            name = re.sub(r"[^\w\- ]", "", match.group(1).lower()).replace(" ", "-")
            names.append(name if name not in names else f"{name}-{names.count(name)}")
    return names


def links(path):
    """What a document links to: (file from the root of the repository, heading or "")."""
    for line in outside_code(path):
        line = re.sub(r"`[^`]*`", "", line)
        for link in re.findall(r"\]\(([^)\s]+)\)", line) + re.findall(r'(?:src|href)="([^"]+)"', line):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, heading = link.partition("#")
            yield link, os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path, heading


def fault_of(file, heading):
    """What is wrong with a link, or None."""
    if not os.path.exists(os.path.join(ROOT, file)):
        return "there is no such file"
    if heading and (not file.endswith(".md") or heading not in anchors(file)):
        return "the file has no such heading"
    return None


def unchanged_rows(path):
    """The rows of tables that the diffs of a document leave as they are: (file, row)."""
    with open(os.path.join(ROOT, path)) as f:
        blocks = re.findall(r"^```diff\n(.*?)^```", f.read(), re.M | re.S)
    file = None
    for line in "\n".join(blocks).split("\n"):
        if re.fullmatch(r" [a-z]+/\S+", line):
            file = line.strip()
        elif file and re.match(r" [A-Z_]+\(", line):
            yield file, line[1:]


def main():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            check=True, capture_output=True, text=True).stdout.split()
    documents = [path for path in listed if os.path.isfile(os.path.join(ROOT, path))]
    followed, faults = 0, []
    for path in documents:
        for link, file, heading in links(path):
            followed += 1
            fault = fault_of(file, heading)
            if fault:
                faults.append(f"{path}: {link}: {fault}")
    in_summary = [file for _, file, _ in links(SUMMARY)]
    pages = [path for path in documents if path.startswith("docs/") and path != SUMMARY]
    faults += [f"{SUMMARY}: {page} is in it {in_summary.count(page)} times" for page in pages if in_summary.count(page) != 1]
    for file, row in unchanged_rows("HACKING.md"):
        with open(os.path.join(ROOT, file)) as f:
            followed += 1
            if row + "\n" not in f.read():
                faults.append(f"HACKING.md: {row}: not in {file}")
    for fault in faults:
        print("FAIL " + fault)
    print(f"links: {followed + len(pages) - len(faults)} passed, {len(faults)} failed, 0 skipped")
    return 0 if followed and not faults else 1


if __name__ == "__main__":
    sys.exit(main())
