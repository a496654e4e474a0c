"""Reads a report as a CI server would: check.py JUNIT.xml SUMMARY.md, of the models of run.sh and hostile.py."""
import sys
import xml.etree.ElementTree as xml

suite, = xml.parse(sys.argv[1]).getroot()
cases = {case.get("name"): case for case in suite}
assert len(suite) == int(suite.get("tests")) == len(cases) == 6
assert sum(case.find("failure") is not None for case in suite) == int(suite.get("failures")) == 4
assert all(float(case.get("time")) > 0 for case in suite)
assert cases["mlp.onnx"].find("failure") is None
assert "\"quotes' & <tags> | bars.onnx" in cases and "line\nbreak \ufffd \x7f.onnx" in cases, list(cases)
failure = cases["broken.onnx"].find("failure")
assert failure.get("type") == "E0301" and "]]></failure>\"'&<" in failure.text, failure.text

with open(sys.argv[2], encoding="utf-8") as f:
    lines = f.read().split("\n")
table = [line for line in lines if line.startswith("|")]
assert len(table) == 2 + 6 and all(line.count("|") == 9 for line in table), table
assert sum(line.startswith("- ") for line in lines) == 4 and not any("<" in line for line in lines), lines
