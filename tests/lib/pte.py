"""Reads the few figures that the tests report from a .pte: instructions, values, arena bytes.

A second, independent reader on purpose: it knows FlatBuffers (tables, vectors) and the field numbers of
ExecuTorch 1.4.1's schema/program.fbs, and shares nothing with the writer in src/pte.
"""

import struct

PROGRAM_EXECUTION_PLAN = 1
PLAN_NAME, PLAN_VALUES, PLAN_CHAINS, PLAN_OPERATORS, PLAN_BUFFER_SIZES = 0, 2, 5, 6, 8
CHAIN_INSTRUCTIONS = 2


class Table:
    def __init__(self, data, at):
        self.data, self.at = data, at
        self.vtable = at - struct.unpack_from("<i", data, at)[0]
        self.fields = (struct.unpack_from("<H", data, self.vtable)[0] - 4) // 2

    def reference(self, field):
        """Position of what a field points to, or None."""
        if field >= self.fields:
            return None
        offset = struct.unpack_from("<H", self.data, self.vtable + 4 + 2 * field)[0]
        return self.at + offset + struct.unpack_from("<I", self.data, self.at + offset)[0] if offset else None

    def count(self, field):
        at = self.reference(field)
        return 0 if at is None else struct.unpack_from("<I", self.data, at)[0]

    def tables(self, field):
        at = self.reference(field)
        for i in range(self.count(field)):
            slot = at + 4 + 4 * i
            yield Table(self.data, slot + struct.unpack_from("<I", self.data, slot)[0])

    def longs(self, field):
        at = self.reference(field)
        return [] if at is None else list(struct.unpack_from(f"<{self.count(field)}q", self.data, at + 4))

    def text(self, field):
        at = self.reference(field)
        return "" if at is None else self.data[at + 4: at + 4 + self.count(field)].decode()


def is_of_sizes(name):
    """Whether an operator computes or compares sizes, and no tensor."""
    return name == "aten::sym_size" or name.startswith("executorch_prim::") and name != "executorch_prim::et_view"


def methods(path):
    """{method name: {instructions, values, operators, arena}}; operators: of tensors; arena is the sum of all planned buffers in bytes."""
    with open(path, "rb") as f:
        data = f.read(64)
        if data[4:8] != b"ET12":
            raise ValueError(f"{path} is no ExecuTorch program")
        # With an extended header the tables end at program_size; the weights behind it are not read.
        size = struct.unpack_from("<Q", data, 16)[0] if data[8:12] == b"eh00" else -1
        f.seek(0)
        data = f.read(size)
    found = {}
    for plan in Table(data, struct.unpack_from("<I", data, 0)[0]).tables(PROGRAM_EXECUTION_PLAN):
        found[plan.text(PLAN_NAME)] = {
            "instructions": sum(chain.count(CHAIN_INSTRUCTIONS) for chain in plan.tables(PLAN_CHAINS)),
            "values": plan.count(PLAN_VALUES),
            "operators": sum(not is_of_sizes(x.text(0)) for x in plan.tables(PLAN_OPERATORS)),
            "arena": sum(plan.longs(PLAN_BUFFER_SIZES)),
        }
    return found
