"""Tables and the closing lines of tests/conformance/run.py."""

import collections
import re

COLUMNS = ("case", "op", "kind", "stage", "code", "seconds", "message")
STAGES = ("ok", "lower", "load", "run", "mismatch", "crash", "timeout")
TOP = 25


def case_line(row):
    text = f"{row['stage']:8} {row['case']}"
    if row["stage"] != "ok":
        text += f"  [{row['op']}] " + (f"{row['code']}: " if row["code"] else "") + row["message"]
    return text


def write_table(path, rows):
    with open(path, "w") as f:
        f.write("\t".join(COLUMNS) + "\n")
        for row in rows:
            f.write("\t".join(str(row[c]).replace("\t", " ") for c in COLUMNS) + "\n")


def generic(message):
    """The message without what differs from case to case: quoted names and numbers."""
    message = re.sub(r"0x[0-9a-f]+", "0xN", message)
    message = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", message)
    return re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "N", message)[:140]


def reason(row):
    return f"{row['stage']}: {row['code']} {generic(row['message'])}" if row["code"] else f"{row['stage']}: {generic(row['message'])}"


def by_op(rows):
    total, passed = collections.Counter(), collections.Counter()
    for row in rows:
        total[row["op"]] += 1
        passed[row["op"]] += row["stage"] == "ok"
    return [(op, passed[op], total[op]) for op in sorted(total)]


def print_reasons(rows):
    bad = [r for r in rows if r["stage"] != "ok"]
    groups = collections.defaultdict(list)
    for row in bad:
        groups[reason(row)].append(row)
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    if ranked:
        print("\ntop reasons")
    for text, members in ranked[:TOP]:
        ops = collections.Counter(r["op"] for r in members).most_common(4)
        print(f"{len(members):5} × {text}\n        " + ", ".join(f"{op} {n}" for op, n in ops)
              + f"; e.g. {members[0]['case']}")
    if len(ranked) > TOP:
        rest = sum(len(m) for _, m in ranked[TOP:])
        print(f"{rest:5} × {len(ranked) - TOP} other reasons")


def print_ops(rows):
    print("\nby op (passed/cases)")
    line = ""
    for op, passed, total in by_op(rows):
        item = f"{op} {passed}/{total}"
        if len(line) + len(item) > 110:
            print(" ", line)
            line = ""
        line += item + "   "
    print(" ", line)


def skips(skipped):
    for text, count in skipped.most_common():
        print(f"skipped {count:5} × {text}")


def finish(rows, floor, skipped, table, seconds, listed, known=None):
    """Prints the summary; 0 if nothing failed. `listed`: every case had its own line already. `known`: case -> (stage,
    reason) of the failures that known.txt explains; they count as skipped while they fail in that very stage."""
    for row in rows:
        stage, why = (known or {}).get(row["case"], (None, None))
        if row["stage"] == stage:
            row["stage"] = "known"
            skipped[f"known {stage}: {why}"] += 1
    stages = collections.Counter(r["stage"] for r in rows)
    refused = [r for r in rows if r["stage"] == "lower" and r["case"] not in floor]
    failed = [r for r in rows if r["stage"] not in ("ok", "known") and (r["stage"] != "lower" or r["case"] in floor)]
    if not listed:
        print_ops(rows)
        print_reasons(rows)
        for row in sorted(failed, key=lambda r: r["case"]):
            print(("FLOOR " if row["case"] in floor else "FAIL  ") + case_line(row))
    print(f"\n{len(rows)} cases in {seconds:.0f} s: " + ", ".join(f"{stages[s]} {s}" for s in STAGES if stages[s]))
    print(f"floor: {len(floor)} cases, {sum(r['case'] in floor for r in failed)} below it; table: {table}")
    skips(skipped)
    if refused:
        print(f"skipped {len(refused):5} × refused by etc lower with a diagnostic (not supported yet)")
    print(f"conformance: {stages['ok']} passed, {len(failed)} failed, {len(refused) + sum(skipped.values())} skipped")
    return 1 if failed else 0
