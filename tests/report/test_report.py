#!/usr/bin/env python3
"""--report: the JSON against docs/reference/report.schema.json, and the page in a real browser.

    tests/report/test_report.py --etc build/release/etc
    tests/report/test_report.py --etc build/release/etc Page.test_search     some of it

Without a Chromium (tools/setup installs one) the tests of the page are skipped; where only those are wanted, with the exit status 77.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

import browser
import models
import schema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAYERS = 3000
SKIPPED = 77  # exit status, for ctest
options = argparse.Namespace()
made = {}  # name: facts
work = tempfile.TemporaryDirectory(prefix="etc-report-")


def in_work(name):
    return os.path.join(work.name, name)


def write_samples(path):
    """An .npz with the input x: three samples of [1, 4]."""
    import array
    values = array.array("f", [0.1, -1.0, 0.5, 2.0, 1.0, 0.3, -0.7, 0.2, -0.4, 0.9, 1.5, -2.0])
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + values.tobytes())


def lower(name, text, *more):
    """Lowers a graph with both reports; the facts."""
    with open(in_work(name + ".etir"), "w") as f:
        f.write(text)
    subprocess.run([options.etc, "lower", in_work(name + ".etir"), "-o", in_work(name + ".pte"), "-q", *more,
                    "--report", in_work(name + ".json"), "--report", in_work(name + ".html")], check=True)
    with open(in_work(name + ".json")) as f:
        return json.load(f)


def make_all(layers):
    write_samples(in_work("samples.npz"))
    return {"mixed": lower("mixed", models.MIXED, "--backend", "xnnpack:min-ops=1"),
            "kernels": lower("kernels", models.MIXED, "--plan", "naive", "--memory", "sram=64,dram=1M"),
            "quantized": lower("quantized", models.MIXED, "--quantize", "int8", "--calibrate", in_work("samples.npz"),
                               "--backend", "xnnpack:min-ops=1"),
            "twice": lower("twice", models.TWICE, "--backend", "xnnpack:min-ops=1"),
            "layers": lower("layers", models.layers(layers))}


class Facts(unittest.TestCase):
    def test_schema(self):
        with open(os.path.join(ROOT, "docs", "reference", "report.schema.json")) as f:
            top = json.load(f)
        for name, facts in made.items():
            with self.subTest(name):
                self.assertEqual(list(schema.check(facts, top, top)), [])

    def test_schema_can_fail(self):
        with open(os.path.join(ROOT, "docs", "reference", "report.schema.json")) as f:
            top = json.load(f)
        facts = json.loads(json.dumps(made["mixed"]))
        facts["methods"][0]["memory"]["end"] = -1
        facts["methods"][0]["stages"][0]["nodes"][0]["extra"] = 1
        del facts["program"]["file"]
        self.assertEqual(len(list(schema.check(facts, top, top))), 3)

    def test_arguments(self):
        """Of a node, what is not a tensor and not left out; none of a call of a delegate."""
        stages = {s["name"]: s.get("nodes", []) for s in made["mixed"]["methods"][0]["stages"]}
        cast = [n for n in stages["import"] if n["op"] == "aten::_to_copy"]
        self.assertEqual([n["args"] for n in cast], [{"dtype": "f64", "non_blocking": "false"}])
        self.assertNotIn("args", next(n for n in stages["import"] if n["op"] == "aten::relu"))
        calls = [n for n in stages["to_backend"] if n.get("delegate")]
        self.assertTrue(calls)
        self.assertFalse([n for n in calls if "args" in n])

    def test_memory(self):
        """Blocks lie in their arena, those in use at one time do not overlap, and the peak is the most that is in use."""
        for name, facts in made.items():
            memory = facts["methods"][0]["memory"]
            sizes = {a["id"]: a["bytes"] for a in memory["arenas"]}
            most = 0
            for t in range(memory["end"] + 1):
                alive = [b for b in memory["blocks"] if b["first"] <= t <= b["last"]]
                most = max(most, sum(b["bytes"] for b in alive))
                places = sorted((b["arena"], b["offset"], b["offset"] + b["bytes"]) for b in alive)
                for (arena, _, end), (next_arena, begin, _) in zip(places, places[1:]):
                    self.assertTrue(arena != next_arena or end <= begin, (name, t))
                self.assertTrue(all(end <= sizes[arena] for arena, _, end in places))
            self.assertEqual(memory["peak"]["bytes"], most, name)
        # Results that are written over operands keep the block in use: there is one for every node, up to the output.
        memory = made["layers"]["methods"][0]["memory"]
        for t in range(memory["end"] + 1):
            self.assertTrue(any(b["first"] <= t <= b["last"] for b in memory["blocks"]), t)

    def test_banks(self):
        """Of --memory, in the facts of the program as in those of its method."""
        arenas = made["kernels"]["methods"][0]["memory"]["arenas"]
        self.assertEqual([a["name"] for a in arenas], ["sram", "dram"])
        self.assertEqual(made["kernels"]["program"]["banks"],
                         [{"name": a["name"], "bytes": a["bytes"], "limit": a["limit"], "methods": 1} for a in arenas])
        self.assertEqual([a["limit"] for a in arenas], [64, 1 << 20])
        self.assertNotIn("banks", made["mixed"]["program"])

    def test_nodes(self):
        """Operands come before their users; the constants of delegates know the node that used them."""
        for facts in made.values():
            for stage in facts["methods"][0]["stages"]:
                for i, node in enumerate(stage.get("nodes", [])):
                    self.assertTrue(all(k < i for k in node.get("in", [])))
        method = made["mixed"]["methods"][0]
        used = {c.get("name"): method["places"][c["place"]]["name"] for c in method["constants"]}
        self.assertEqual(used, {None: "/first/Gemm", "second.weight": "/second/Gemm"})

    def test_constants(self):
        """Equal ones count once, as in the file."""
        for name, facts in made.items():
            self.assertEqual(sum(c["bytes"] for m in facts["methods"] for c in m["constants"]), facts["program"]["weight_bytes"], name)

    def test_refusals(self):
        backend = made["mixed"]["methods"][0]["backends"][0]
        self.assertEqual((backend["taken"], backend["left"]), (3, 2))
        self.assertEqual([(d["delegate"], d["nodes"]) for d in backend["delegates"]], [(1, 3)])
        self.assertEqual([g["rule"] for g in backend["refusals"]], ["float-type"])
        self.assertTrue(any("float-type" in text for text in made["mixed"]["next"]))
        self.assertTrue(any("--plan greedy" in text for text in made["kernels"]["next"]))

    def test_shared_delegates(self):
        """Calls of equal code are calls of one delegate, by the numbers that etc inspect counts and etc why names."""
        method = made["twice"]["methods"][0]
        self.assertEqual([d["calls"] for d in method["delegates"]], [2, 1])
        last = [s["nodes"] for s in method["stages"] if "nodes" in s][-1]
        self.assertEqual([n["delegate"] for n in last if "delegate" in n], [1, 1, 2])
        self.assertEqual({p["name"]: p["delegate"] for p in method["places"] if "delegate" in p},
                         {"/first/Gemm": 1, "/second/Gemm": 1, "/Sigmoid": 2})
        self.assertEqual([d["delegate"] for d in method["backends"][0]["delegates"]], [1, 1, 2])
        self.assertEqual(made["twice"]["program"]["delegate_calls"], 3)
        told = subprocess.run([options.etc, "why", in_work("twice.etir"), "/second/Gemm", "--backend", "xnnpack:min-ops=1"],
                              check=True, capture_output=True, text=True).stdout
        self.assertIn("into delegate 1 ", told)

    def test_quantization(self):
        q = made["quantized"]["methods"][0]["quantization"]
        self.assertEqual(q["samples"], 3)
        effect = [v["output_sqnr"] for v in q["values"] if v["output_sqnr"] is not None]
        self.assertGreater(len(effect), 1)
        self.assertEqual(effect, sorted(effect))
        self.assertNotIn("quantization", made["mixed"]["methods"][0])

    def test_program_is_the_same(self):
        subprocess.run([options.etc, "lower", in_work("mixed.etir"), "-o", in_work("plain.pte"), "-q", "--quantize", "int8", "--calibrate",
                        in_work("samples.npz"), "--backend", "xnnpack:min-ops=1"], check=True)
        with open(in_work("plain.pte"), "rb") as a, open(in_work("quantized.pte"), "rb") as b:
            self.assertEqual(a.read(), b.read())


@unittest.skipIf(browser.find_browser() is None, "no Chromium")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.b = browser.Browser(browser.find_browser())

    @classmethod
    def tearDownClass(cls):
        cls.b.close()

    def open(self, name, view="summary", width=1280, height=800, phone=False):
        self.b.prefer("light")
        self.b.size(width, height, phone)
        self.b.open("about:blank")
        self.b.open(f"file://{in_work(name)}.html#/{view}")
        self.b.frame()

    def tearDown(self):
        self.assertEqual(self.b.errors, [])
        self.assertTrue(all(r.startswith("file://") and r.split("#")[0].endswith(".html") for r in self.b.requests), self.b.requests)

    def js(self, expression):
        return self.b.js(expression)

    def title(self):
        """Of the details, and the node that they are of."""
        return self.js("document.querySelector('#details h2').textContent"), self.js("state.node < 0 ? '' : nodeName(layout.nodes[state.node])")

    def node_at(self, name):
        """Where the node of that name is on the screen."""
        return self.js("(() => { const i = layout.nodes.findIndex(n => nodeName(n) === %s), b = canvas.getBoundingClientRect();"
                       " return [b.left + b.width / 2 + (layout.x[i] - camera.x) * camera.scale,"
                       " b.top + b.height / 2 + (layerTop(layout.layer[i]) + NODE_HEIGHT / 2 - camera.y) * camera.scale]; })()" % json.dumps(name))

    def test_opens_without_network(self):
        self.open("mixed")
        self.assertEqual(self.js("document.title"), in_work("mixed.pte") + " · etc report")
        self.assertIn("float-type", self.js("byId('view-summary').textContent"))
        blocked = self.js("fetch('https://example.com/').then(() => 'open', () => 'blocked')")
        self.assertEqual(blocked, "blocked")
        self.b.errors = [e for e in self.b.errors if "Content Security Policy" not in e]
        self.b.requests = [r for r in self.b.requests if "example.com" not in r]

    def test_click_shows_details(self):
        self.open("mixed", "graph")
        self.b.click(*self.node_at("/second/Gemm"))
        self.assertEqual(self.title(), ("linear", "/second/Gemm"))
        text = self.js("byId('details').textContent")
        for part in ("second.weight", "Delegate 1", "f32[1, 4]", "/first/Relu", "16 multiply-adds"):
            self.assertIn(part, text)
        self.b.press("#details ul .link")  # its operand
        self.assertEqual(self.title()[1], "/first/Relu")
        self.b.click(*self.js("(() => { const b = canvas.getBoundingClientRect(); return [b.left + 60, b.bottom - 60]; })()"))
        self.assertEqual(self.title()[0], "No node is chosen")

    def test_hostile_names(self):
        self.open("mixed", "graph")
        self.b.click(*self.node_at("/tail/<img src=x onerror=alert(1)>"))
        self.assertIn("<img", self.js("byId('details').textContent"))
        for view in ("summary", "refusals", "memory", "size"):
            self.js(f"choose('{view}')")
            self.assertEqual(self.js("document.querySelectorAll('img').length"), 0)

    def test_search(self):
        self.open("layers", "graph")
        self.b.key("/")
        self.assertEqual(self.js("document.activeElement.id"), "search")
        self.b.type("blocks.200/layer.7")
        self.assertEqual(self.js("found.children.length"), 1)
        self.b.key("Enter")
        self.assertEqual(self.title()[1], "/blocks.200/layer.7/Op")
        x, y = self.node_at("/blocks.200/layer.7/Op")
        self.assertTrue(self.js(f"document.elementFromPoint({x}, {y}) === canvas"), "the node is not in view")
        self.js("search.select()")
        self.b.type("blocks.17/ add")
        for key in ("ArrowDown", "ArrowDown", "Enter"):
            self.b.key(key)
        self.assertEqual(self.js("[titleOf(layout.nodes[state.node]), hits.indexOf(state.node)]"), ["add", 1])
        self.b.key("Enter")  # the next one
        self.assertEqual(self.js("hits.indexOf(state.node)"), 2)
        self.js("search.select()")
        self.b.type("nothing has this name")
        self.assertIn("No node", self.js("found.textContent"))
        self.b.key("Escape")
        self.assertEqual(self.js("[document.activeElement.id, found.hidden]"), ["graph", True])

    def test_keyboard(self):
        self.open("mixed", "graph")
        self.js("canvas.focus()")
        self.b.key("ArrowDown")
        self.assertEqual(self.js("layout.nodes[state.node].op"), "input")
        self.b.key("ArrowDown")
        self.assertEqual(self.title()[1], "/first/Gemm")
        self.b.key("ArrowUp")
        self.assertEqual(self.js("layout.nodes[state.node].op"), "input")
        self.b.key("End")
        self.assertEqual(self.js("layout.nodes[state.node].op"), "output")
        self.assertIn("output", self.js("byId('said').textContent"))
        scale = self.js("camera.scale")
        self.b.key("+")
        self.assertGreater(self.js("camera.scale"), scale)
        self.b.key("Enter")
        self.assertEqual(self.js("document.activeElement.id"), "details")
        self.js("canvas.focus()")
        self.b.key("Escape")
        self.assertEqual(self.js("state.node"), -1)
        self.js("byId('tab-graph').focus()")
        self.b.key("ArrowRight")
        self.assertEqual(self.js("[document.activeElement.id, byId('view-memory').hidden, byId('view-graph').hidden]"), ["tab-memory", False, True])

    def test_wheel_and_minimap(self):
        self.open("layers", "graph")
        x, y = self.b.centre("#graph")
        before = self.js("[camera.y, camera.scale]")
        self.b.wheel(x, y, 300)
        name = self.js("nodeName(layout.nodes[layout.layers[Math.floor(camera.y / (NODE_HEIGHT + LAYER_GAP))].filter(i => i < layout.nodes.length)"
                       ".sort((a, b) => Math.abs(layout.x[a] - camera.x) - Math.abs(layout.x[b] - camera.x))[0]])")
        at = self.node_at(name)
        self.b.wheel(*at, -200, ctrl=True)  # what is under the pointer stays there
        for a, b in zip(self.node_at(name), at):
            self.assertAlmostEqual(a, b, delta=1)
        after = self.js("[camera.y, camera.scale]")
        self.assertGreater(after[0], before[0])
        self.assertGreater(after[1], before[1])
        self.b.click(*self.b.centre("#minimap"))
        self.assertAlmostEqual(self.js("camera.y / layout.height"), 0.5, delta=0.02)
        self.b.press("#zoom-fit")
        self.assertLess(self.js("layout.height * camera.scale"), 800)

    def test_stages(self):
        self.open("mixed", "graph")
        self.b.click(*self.node_at("/first/Relu"))
        names = self.js("method().stages.map(s => s.name)")
        self.b.press(f"#stages button:nth-child({names.index('edge') + 1})")
        self.assertEqual(self.title()[1], "/first/Relu")
        self.b.press(f"#stages button:nth-child({names.index('to_executorch') + 1})")
        self.assertEqual(self.js("[...byId('stages').children].map(c => c.getAttribute('aria-pressed')).indexOf('true')"), len(names) - 1)
        self.assertIn("delegate 1", self.js("layout.nodes.map(titleOf)"))
        kinds = "Object.fromEntries(layout.nodes.map(n => [titleOf(n), fate(n).kind]))"
        expected = {"input": "end", "delegate 1": "delegate", "to_copy": "kernel", "exp": "kernel", "output": "end"}
        self.assertEqual(self.js(kinds), expected)
        self.b.press("#stages button:nth-child(1)")
        self.assertEqual(self.js(kinds), {"input": "end", "linear": "delegate", "relu": "delegate", "to_copy": "kernel", "exp": "kernel", "output": "end"})

    def test_light_and_dark(self):
        self.open("mixed", "graph")
        colour = "getComputedStyle(document.body.parentElement).backgroundColor"
        light = self.js(colour)
        self.b.prefer("dark")
        self.b.frame()
        dark = self.js(colour)
        self.assertNotEqual(light, dark)
        self.assertEqual(self.js("colours.bg"), "#12151b")
        self.b.press("#theme")
        self.assertEqual(self.js(colour), light)

    def test_phone(self):
        self.open("mixed", "graph", 360, 640, phone=True)
        self.b.tap(*self.node_at("/first/Gemm"))
        self.assertEqual(self.title(), ("linear", "/first/Gemm"))
        box = self.js("(() => { const b = byId('details').getBoundingClientRect(); return [b.left, b.right, b.bottom]; })()")
        self.assertEqual(box, [0, 360, 640])
        self.b.press("#details .close")
        self.assertEqual(self.js("getComputedStyle(byId('details')).display"), "none")
        for name in ("mixed", "quantized", "layers"):
            for view in self.js("views.map(v => v.id)"):
                self.open(name, view, 360, 640, phone=True)
                self.assertLessEqual(self.js("document.documentElement.scrollWidth"), 360, (name, view))

    def test_banks(self):
        self.open("kernels")
        text = self.js("document.querySelector('.figures').textContent")
        for bank in made["kernels"]["program"]["banks"]:
            self.assertIn("of it in " + bank["name"], text)
        self.assertIn("of it in dram, which has 1.00 MiB", text)
        self.assertIn("2 arenas have 128 B together", self.js("peakText()"))
        code = self.js("withOptions('--quantize int8, with --backend xnnpack:skip; or').filter(x => x.tagName).map(x => x.textContent)")
        self.assertEqual(code, ["--quantize int8", "--backend xnnpack:skip"])

    def test_memory(self):
        self.open("kernels", "memory")
        self.assertEqual(self.js("memoryArena"), self.js("fullestArena()"))
        facts = made["kernels"]["methods"][0]["memory"]
        self.assertIn(f"{facts['peak']['bytes']} B", self.js("byId('peak-text').textContent"))
        self.assertEqual(self.js("byId('time').value"), str(facts["peak"]["at"]))
        self.assertEqual(self.js("[Math.max(...usage()), usage()[method().memory.peak.at]]"), [facts["peak"]["bytes"]] * 2)
        rows = "document.querySelectorAll('#time-table tbody tr').length"
        self.assertEqual(self.js(rows), len(facts["peak"]["blocks"]))
        self.js("byId('time').focus()")
        self.b.key("Home")
        self.assertIn("before the first", self.js("byId('time-table').textContent"))
        self.b.click(*self.b.centre("#memory"))
        self.assertNotEqual(self.js("memoryAt"), 0)
        self.b.press("#time-table .link")
        self.assertEqual(self.js("[byId('view-graph').hidden, state.node >= 0]"), [False, True])

    def test_size(self):
        self.open("mixed", "size")
        cells = self.js("[...document.querySelectorAll('#treemap > button')].map(b => [b.getAttribute('aria-label'), b.offsetWidth * b.offsetHeight])")
        self.assertEqual(len(cells), 2)
        self.assertAlmostEqual(cells[0][1], cells[1][1], delta=cells[0][1] / 20)
        self.b.press("#treemap > button")
        self.assertEqual(self.js("[byId('view-graph').hidden, titleOf(layout.nodes[state.node])]"), [False, "linear"])

    def test_refusals(self):
        self.open("mixed", "refusals")
        self.assertIn("float-type", self.js("byId('view-refusals').textContent"))
        self.assertEqual(self.js("document.querySelectorAll('#view-refusals tbody tr').length"), 2)
        self.b.press("#view-refusals .link")
        self.assertIn("xnnpack leaves it: float-type", self.js("byId('details').textContent"))
        self.open("kernels", "refusals")
        self.assertIn("No backend", self.js("byId('view-refusals').textContent"))

    def test_quantization(self):
        self.open("quantized", "quantization")
        q = made["quantized"]["methods"][0]["quantization"]
        self.assertEqual(self.js("document.querySelectorAll('#view-quantization tbody tr').length"), len(q["values"]) + len(q["outputs"]))
        self.open("mixed", "quantization")
        self.assertEqual(self.js("[byId('tab-quantization').hidden, byId('view-summary').hidden]"), [True, False])

    def test_first_view_of_many_nodes(self):
        """Of three times the least, since other work may run on the machine."""
        times = []
        for _ in range(3):
            self.open("layers", "graph")
            times.append(self.js("performance.now()") / 1000)
            self.assertGreater(self.js("layout.nodes.length"), LAYERS)
            # Something is drawn: the middle of a node in view has its colour.
            self.assertTrue(self.js("(() => { const d = paper.getImageData(0, 0, canvas.width, canvas.height).data; return d.some(x => x); })()"))
        print(f"first view of {LAYERS} nodes: {min(times):.2f} s", file=sys.stderr)
        self.assertLess(min(times), 2)


def main():
    global made
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", required=True)
    p.add_argument("tests", nargs="*", metavar="Facts|Page[.test]", help="default: all")
    args = p.parse_args(namespace=options)
    if args.tests and all(t.startswith("Page") for t in args.tests) and browser.find_browser() is None:
        print("SKIPPED: the page of --report: no Chromium, tools/setup installs it")
        return SKIPPED
    made = make_all(100 if args.tests and not any(t.startswith("Page") for t in args.tests) else LAYERS)
    return not unittest.main(argv=[sys.argv[0], *args.tests], exit=False).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
