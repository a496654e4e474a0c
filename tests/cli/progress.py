#!/usr/bin/env python3
"""The line of progress on a terminal: progress.py ETC MODEL. The model comes late, through a pipe."""

import os
import pty
import select
import subprocess
import sys
import time

ERASE = "\r\x1b[K"


def show(etc, model, extra=(), terminal="xterm", wait=1.0, data=None):
    """What appears on the terminal, once the line has been there (or wait is over) and the command has ended."""
    master, slave = pty.openpty()
    process = subprocess.Popen([etc, "lower", "-", "-o", "late.pte", *extra], stdin=subprocess.PIPE, stderr=slave,
                               env={**os.environ, "TERM": terminal})
    os.close(slave)
    seen, end = b"", time.monotonic() + wait
    while time.monotonic() < end and b"import" not in seen:
        if select.select([master], [], [], 0.05)[0]:
            seen += os.read(master, 4096)
    process.stdin.write(open(model, "rb").read() if data is None else data)
    process.stdin.close()
    process.wait()
    while select.select([master], [], [], 0.1)[0]:
        try:
            seen += os.read(master, 4096)
        except OSError:
            break
    return seen.decode()


def main():
    etc, model = sys.argv[1:3]
    text = show(etc, model, ["--dim", "batch=2"], wait=20)
    print("the line is drawn:", text.startswith(ERASE + "etc: import"))
    print("and gone in the end:", ERASE + "wrote late.pte" in text and "etc: " not in text.rpartition(ERASE)[2])
    text = show(etc, model, [], wait=20)
    before, _, after = text.partition("<stdin>: ")
    print("a message takes its place:", before.endswith(ERASE) and "E0317" in after and "etc: " not in after.split("error")[0])
    for extra, terminal in ((["-q"], "xterm"), (["--diagnostics=json"], "xterm"), ([], "dumb")):
        text = show(etc, model, ["--dim", "batch=2", *extra], terminal)
        print(f"{' '.join(extra)} TERM={terminal}:", "etc: import" in text or "\r\x1b" in text)


if __name__ == "__main__":
    main()
