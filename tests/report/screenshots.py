#!/usr/bin/env python3
"""Makes the pictures of reports in docs/images, from a generated network (tests/zoo/make.py).

    tests/report/screenshots.py --etc build/release/etc --models build/zoo --to docs/images
"""

import argparse
import os
import subprocess
import sys
import tempfile

import browser

NODE = "goTo(layout.nodes.findIndex(n => nodeName(n) === '%s'))"
# File, more options, view, size of the window, whether it is a phone, light or dark, what is chosen.
PICTURES = [
    ("report-graph.png", ["--backend", "xnnpack"], "graph", (1180, 720), False, "light", NODE % "/Add_2"),
    ("report-memory.png", [], "memory", (1180, 860), False, "light", "setTime(26)"),
    ("report-phone.png", ["--backend", "xnnpack"], "graph", (390, 760), True, "dark", NODE % "/s3/s3.1/Concat"),
]
LARGEST = 150 * 1024


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", required=True)
    p.add_argument("--models", required=True)
    p.add_argument("--to", required=True)
    args = p.parse_args()
    path = browser.find_browser()
    if not path:
        sys.exit("there is no Chromium; tools/setup installs one")
    with tempfile.TemporaryDirectory() as work, browser.Browser(path) as b:
        page, model = os.path.join(work, "yolo.html"), os.path.join(args.models, "yolo", "model.onnx")
        for name, more, view, size, phone, scheme, choose in PICTURES:
            subprocess.run([args.etc, "lower", model, "-o", os.path.join(work, "yolo.pte"), "--report", page, "-q", *more], check=True)
            b.size(*size, phone, 1.5 if phone else 1)
            b.prefer(scheme)
            b.open("about:blank")
            b.open(f"file://{page}#/{view}")
            b.js("document.querySelector('h1').textContent = 'yolo.pte'")
            b.js(choose)
            b.frame()
            to = os.path.join(args.to, name)
            b.screenshot(to)
            print(f"{to}: {os.path.getsize(to)} bytes")
            if os.path.getsize(to) > LARGEST:
                sys.exit(f"{to} is larger than {LARGEST} bytes")


if __name__ == "__main__":
    main()
