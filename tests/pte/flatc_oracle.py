"""flatc as a second reader and writer of our program files.

For each hand-built program: flatc reads it by schema/program.fbs and writes JSON; what the JSON says of values, operators, instructions and
constants must be what `etc inspect --json` says. flatc then makes a FlatBuffer of the JSON, with its own layout: `etc inspect` must say
the same of that file. Where the runtime's own schema is installed, ours must be compatible with it.

usage: flatc_oracle.py PTE_PROGRAMS ETC FLATC SCHEMA
Exit: 0 all right, 1 a difference, 77 flatc is not installed.
"""

import glob
import json
import os
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77


def flatc_json(flatc, schema, folder, path):
    subprocess.run([flatc, "--json", "--strict-json", "--raw-binary", "-o", folder, schema, "--", path], check=True)
    with open(os.path.join(folder, os.path.basename(path)[:-4] + ".json")) as f:
        return json.load(f)


def inspect(etc, path):
    return json.loads(subprocess.run([etc, "inspect", "--json", path], check=True, capture_output=True, text=True).stdout)


def tensor_of(value):
    return {"sizes": value["val"].get("sizes", []), "dynamic": "shape_dynamism" in value["val"]}


def shown_values(values):
    return [{"sizes": v["sizes"], "dynamic": v["dynamic"]} for v in values]


def method_differences(plan, shown):
    """Lines that say where flatc's view of a plan differs from inspect's."""
    instructions = plan["chains"][0]["instructions"]
    calls = {}
    for instruction in instructions:
        if instruction["instr_args_type"] != "KernelCall":
            continue
        operator = plan["operators"][instruction["instr_args"].get("op_index", 0)]
        name = operator["name"] + ("." + operator["overload"] if operator["overload"] else "")
        calls[name] = calls.get(name, 0) + 1
    pairs = {
        "name": (plan["name"], shown["name"]),
        "values": (len(plan["values"]), shown["values"]),
        "instructions": (len(instructions), shown["instructions"]["count"]),
        "operators": (calls, {o["name"]: o["calls"] for o in shown["operators"]}),
        "inputs": ([tensor_of(plan["values"][i]) for i in plan["inputs"]], shown_values(shown["inputs"])),
        "outputs": ([tensor_of(plan["values"][i]) for i in plan["outputs"]], shown_values(shown["outputs"])),
        "arenas": (plan["non_const_buffer_sizes"][1:], shown["memory"]["arenas"]),
    }
    return [f"{key}: flatc {a}, inspect {b}" for key, (a, b) in pairs.items() if a != b]


def differences(program, shown):
    found = []
    offsets = program["constant_segment"]["offsets"]
    if len(offsets) - 1 != shown["constants"]["unique"]:
        found.append(f"constants: flatc {len(offsets) - 1}, inspect {shown['constants']['unique']}")
    for plan, method in zip(program["execution_plan"], shown["methods"], strict=True):
        found += method_differences(plan, method)
    return found


def rewrite(flatc, schema, folder, path):
    """The program as flatc writes it, the segments of the original behind it."""
    subprocess.run([flatc, "--binary", "-o", folder, schema, os.path.join(folder, os.path.basename(path)[:-4] + ".json")], check=True)
    with open(path, "rb") as f:
        original = f.read()
    made = os.path.join(folder, os.path.basename(path))
    with open(made, "rb") as f:
        flat = f.read()
    if original[8:12] == b"eh00":
        _, _, base, size = struct.unpack_from("<IQQQ", original, 12)
        # The header goes behind the identifier: all offsets but the first are relative.
        head = struct.pack("<I", struct.unpack_from("<I", flat)[0] + 32) + flat[4:8]
        length = len(flat) + 32
        start = (length + 127) // 128 * 128
        flat = head + struct.pack("<4sIQQQ", b"eh00", 32, length, start, size) + flat[8:]
        flat += bytes(start - length) + original[base:base + size]
    with open(made, "wb") as f:
        f.write(flat)
    return made


def conforms(flatc, schema):
    """None, or what flatc says against our schema, or SKIPPED: the runtime's own is looked for in the Python environments."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    venv = os.environ.get("ETC_VENV", os.path.join(root, ".venv"))
    theirs = glob.glob(os.path.join(venv, "lib", "python*", "site-packages", "executorch", "schema", "program.fbs"))
    if not theirs:
        print("SKIPPED: comparison with the runtime's own schema (not installed)")
        return SKIPPED
    checks = [[flatc, "-I", os.path.dirname(theirs[0]), "--conform", theirs[0], schema],
              [flatc, "-I", os.path.dirname(theirs[0]), "--conform", schema, theirs[0]]]
    for command in checks:
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            return result.stdout + result.stderr
    return None


def main():
    programs, etc, flatc, schema = sys.argv[1:]
    if not os.access(flatc, os.X_OK):
        print("SKIPPED: flatc is not installed (Debian package flatbuffers-compiler)")
        return SKIPPED
    failures = 0
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as out:
        subprocess.run([programs, folder], check=True)
        paths = sorted(glob.glob(os.path.join(folder, "*.pte")))
        for path in paths:
            found = differences(flatc_json(flatc, schema, out, path), inspect(etc, path))
            made = rewrite(flatc, schema, out, path)
            ours, theirs = inspect(etc, path), inspect(etc, made)
            found += [] if ours["methods"] == theirs["methods"] else ["inspect says otherwise of the file that flatc made of the JSON"]
            verified = subprocess.run([etc, "verify", made], capture_output=True, text=True)
            found += [] if verified.returncode == 0 else ["etc verify: " + verified.stderr]
            print(f"{'FAIL' if found else 'ok  '} {os.path.basename(path)}", *found, sep="\n       " if found else " ")
            failures += bool(found)
        failures += not paths
    message = conforms(flatc, schema)
    if message and message != SKIPPED:
        print("FAIL our schema against the runtime's:\n" + message)
        failures += 1
    return 1 if failures else message or 0


if __name__ == "__main__":
    sys.exit(main())
