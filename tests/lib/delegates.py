"""What of a program runs on delegates and what on kernels: the figures that show how well a backend was used.

Reads the file by itself, like pte.py, whose reader of FlatBuffers it takes; numbers of fields and unions are those of
ExecuTorch 1.4.1's schema/program.fbs, and of backends/xnnpack/serialization/schema.fbs for what is in a delegate.
"""

import collections
import struct

from pte import PLAN_CHAINS, PLAN_OPERATORS, PLAN_VALUES, PROGRAM_EXECUTION_PLAN, CHAIN_INSTRUCTIONS, Table, is_of_sizes

PROGRAM_DELEGATE_DATA, PROGRAM_SEGMENTS = 3, 4
PLAN_DELEGATES = 7
KERNEL_CALL, DELEGATE_CALL = 1, 2
TENSOR, TENSOR_LISTS = 5, (10, 11)
LONG, FLOATS = 4, {5, 6, 7}  # 64-bit integers; half, float, double
DELEGATE_IN_SEGMENT = 1
XNN_TRANSPOSE = 5
# They fetch rows or put them by whole numbers, which no delegate does, and compute nothing.
INDEXING = {"aten::embedding", "aten::index", "aten::index_select", "aten::gather", "aten::index_put", "aten::scatter"}


def scalar(table, field, form, default=0):
    if field >= table.fields:
        return default
    offset = struct.unpack_from("<H", table.data, table.vtable + 4 + 2 * field)[0]
    return struct.unpack_from(form, table.data, table.at + offset)[0] if offset else default


def union(table):
    """(type, table) of a table that holds nothing but a union."""
    at = table.reference(1)
    return scalar(table, 0, "<B"), None if at is None else Table(table.data, at)


def integers(table, field):
    at = table.reference(field)
    return [] if at is None else list(struct.unpack_from(f"<{table.count(field)}i", table.data, at + 4))


def holds_floats(values, index):
    kind, value = union(values[index])
    if kind == TENSOR:
        return scalar(value, 0, "<b") in FLOATS
    return kind in TENSOR_LISTS and any(holds_floats(values, i) for i in integers(value, 0) if i >= 0)


def computes_floats(name, values, arguments):
    """Whether a delegate might have taken the call: it touches floats, and is no indexing. Delegates have no 64-bit integers:
    to make floats of those is the end of what is done with integers."""
    if not name.startswith("aten::") or name in INDEXING or is_of_sizes(name) or not any(holds_floats(values, i) for i in arguments):
        return False
    kind, value = union(values[arguments[0]])
    return not (name == "aten::_to_copy" and kind == TENSOR and scalar(value, 0, "<b") == LONG)


def nodes(blob):
    """(type, debug handle) of each XNode in a blob of the XNNPACK delegate."""
    tables = blob[struct.unpack_from("<I", blob, 10)[0]:] if blob[4:8] == b"XH00" else blob
    root = Table(tables, struct.unpack_from("<I", tables, 0)[0])
    return [(scalar(node, 0, "<B"), scalar(node, 2, "<I")) for node in root.tables(1)]


def transposes(blob):
    """Transposes in a blob of the XNNPACK delegate."""
    return sum(kind == XNN_TRANSPOSE for kind, _ in nodes(blob))


def blob_of(data, program, delegate, base):
    processed = Table(data, delegate.reference(1))
    where, index = scalar(processed, 0, "<b"), scalar(processed, 1, "<I")
    if where == DELEGATE_IN_SEGMENT:
        segment = list(program.tables(PROGRAM_SEGMENTS))[index]
        begin = base + scalar(segment, 0, "<Q")
        return data[begin: begin + scalar(segment, 1, "<Q")]
    inline = list(program.tables(PROGRAM_DELEGATE_DATA))[index]
    begin = inline.reference(0) + 4
    return data[begin: begin + inline.count(0)]


def read(path):
    """(its bytes, the table of the program, where its segments begin)"""
    with open(path, "rb") as f:
        data = f.read()
    base = struct.unpack_from("<Q", data, 24)[0] if data[8:12] == b"eh00" else 0
    return data, Table(data, struct.unpack_from("<I", data, 0)[0]), base


def called_nodes(path):
    """{instruction: nodes} of the calls of XNNPACK in the first method."""
    data, program, base = read(path)
    plan = next(iter(program.tables(PROGRAM_EXECUTION_PLAN)))
    delegates, chain = list(plan.tables(PLAN_DELEGATES)), next(iter(plan.tables(PLAN_CHAINS)))
    calls = {i: delegates[scalar(call, 0, "<i")]
             for i, (kind, call) in enumerate(map(union, chain.tables(CHAIN_INSTRUCTIONS))) if kind == DELEGATE_CALL}
    return {i: nodes(blob_of(data, program, d, base)) for i, d in calls.items() if d.text(0) == "XnnpackBackend"}


def figures(path):
    """delegates: calls of them; transposes: those in them; outside: {kernel: calls that compute floats}; kernels: all
    calls. All methods of the program together."""
    data, program, base = read(path)
    found = {"delegates": 0, "transposes": 0, "kernels": 0, "outside": collections.Counter()}
    for plan in program.tables(PROGRAM_EXECUTION_PLAN):
        values, names = list(plan.tables(PLAN_VALUES)), [x.text(0) for x in plan.tables(PLAN_OPERATORS)]
        found["transposes"] += sum(transposes(blob_of(data, program, d, base)) for d in plan.tables(PLAN_DELEGATES)
                                   if d.text(0) == "XnnpackBackend")
        for chain in plan.tables(PLAN_CHAINS):
            for kind, call in map(union, chain.tables(CHAIN_INSTRUCTIONS)):
                found["delegates"] += kind == DELEGATE_CALL
                if kind != KERNEL_CALL:
                    continue
                found["kernels"] += 1
                name = names[scalar(call, 0, "<i")]
                if computes_floats(name, values, integers(call, 1)):
                    found["outside"][name[len("aten::"):]] += 1
    return found
