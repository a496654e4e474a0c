#!/usr/bin/env python3
"""Opens what etc writes in Netron and Model Explorer themselves, served by their packages, in Chromium. Not a part of CI: the packages are large.

    python3 -m venv /tmp/viewers && /tmp/viewers/bin/pip install netron ai-edge-model-explorer
    tests/report/viewers.py --etc build/release/etc --python /tmp/viewers/bin/python [--pictures FOLDER]

Each must show as many nodes as the graph has. Whatever they want from the network is blocked.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

import browser

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "examples", "digits", "digits.onnx")
SERVE = {"netron": "import netron, sys, time; netron.start(sys.argv[1], address=int(sys.argv[2]), browse=False); time.sleep(600)",
         "model_explorer": "import sys; path, port = sys.argv[1:]; sys.argv = ['model-explorer', '--port', port, '--no_open_in_browser',"
                           " '--skip_health_check', path]; from model_explorer.cmdline import main; main()"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            found = what()
            if found:
                return found
        except OSError:
            pass
        time.sleep(0.2)
    return None


def show(b, python, tool, path, count, picture):
    """How many nodes the tool shows of the file; count is an expression of the page."""
    port = free_port()
    server = subprocess.Popen([python, "-c", SERVE[tool], path, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not wait_for(lambda: socket.create_connection(("127.0.0.1", port))):
            raise RuntimeError(f"{tool} does not start: is it installed for {python}?")
        b.page("Network.setBlockedURLs", urls=["https://*"])
        b.page("Network.setCookie", name="consent", value="1", url=f"http://127.0.0.1:{port}")
        models = urllib.parse.quote(json.dumps({"models": [{"url": path}]}))
        b.open(f"http://127.0.0.1:{port}/" + (f"?data={models}" if tool == "model_explorer" else ""))
        found = wait_for(lambda: b.js(count)) or 0
        if picture:
            time.sleep(1)
            b.screenshot(picture)
        return int(found)
    finally:
        server.terminate()
        server.wait()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", required=True)
    p.add_argument("--python", required=True, help="one that has netron and ai-edge-model-explorer")
    p.add_argument("--pictures", metavar="FOLDER", help="writes what they show")
    args = p.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="etc-viewers-") as work, browser.Browser(browser.find_browser()) as b:
        b.size(1400, 1000)

        def etc(*arguments):
            subprocess.run([args.etc, *arguments, "-q"], check=True)

        dot, graphs, program = (os.path.join(work, name) for name in ("m.dot", "m.json", "m.pte"))
        etc("print", MODEL, "--dim", "batch=2", "--format", "dot", "-o", dot)
        etc("print", MODEL, "--dim", "batch=2", "--stage", "to_executorch", "--format", "model-explorer", "-o", graphs)
        etc("lower", MODEL, "--dim", "batch=2", "--backend", "xnnpack", "-o", program)
        with open(dot, encoding="utf-8") as f:
            lines = f.read().splitlines()
        with open(graphs, encoding="utf-8") as f:
            nodes = len(json.load(f)["graphs"][0]["nodes"])
        # Netron draws constants within the nodes that use them; of a program, the delegate and both ends.
        drawn = sum("label=" in line and "get_parameter" not in line and "->" not in line for line in lines)
        netron = "document.querySelectorAll('g.node').length"
        explorer = "(document.body.innerText.match(/(\\d+) nodes/) || [])[1]"
        for tool, path, count, expected in (("netron", dot, netron, drawn), ("netron", program, netron, 3),
                                            ("model_explorer", graphs, explorer, nodes)):
            picture = args.pictures and os.path.join(args.pictures, os.path.basename(path) + ".png")
            found = show(b, args.python, tool, path, count, picture)
            failed += found != expected
            print(f"{tool} {os.path.basename(path)}: {found} nodes, {expected} expected")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
