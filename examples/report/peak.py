"""What a build could log or compare of report.json: peak.py REPORT.json (docs/reference/report.schema.json describes the file)."""
import json
import sys

with open(sys.argv[1]) as f:
    facts = json.load(f)
assert (facts["format"], facts["version"]) == ("etc-report", 1)
print(f"{facts['program']['file']}: {facts['program']['file_bytes']} bytes")
for method in facts["methods"]:
    memory, last = method["memory"], method["stages"][-1]
    nodes = next(s for s in method["stages"] if s["name"] == last.get("same_as", last["name"]))["nodes"]
    print(f"{method['name']}: {len(method['delegates'])} delegates, {memory['peak']['bytes']} bytes in use at the peak:")
    for block in (memory["blocks"][i] for i in memory["peak"]["blocks"]):
        node = nodes[block["node"]]
        print(f"  {block['bytes']:8} {block.get('name', '')} {block['type']} of {node['op']}")
    for backend in method["backends"]:
        for group in backend["refusals"]:
            print(f"  {backend['backend']} leaves {len(group['nodes'])} x {group['rule']}: {group['message']}")
