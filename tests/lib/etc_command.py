"""Calls the `etc` command as a user would and reads its diagnostics."""

import json
import os
import subprocess
import time
from dataclasses import dataclass, field

EXIT_REFUSED = (1, 2)  # the model, or a flag that does not fit it


@dataclass
class Result:
    code: int | None  # exit status, negative for a signal, None for a timeout
    seconds: float
    stdout: str = ""
    stderr: str = ""
    diagnostics: list = field(default_factory=list)

    def errors(self):
        return [d for d in self.diagnostics if d.get("severity") == "error"]

    def summary(self):
        """(diagnostic code or '', one line)."""
        errors = self.errors()
        if errors:
            first = errors[0]
            where = first.get("node") or first.get("op") or ""
            text = first.get("message", "")
            more = f" (+{len(errors) - 1} more)" if len(errors) > 1 else ""
            return str(first.get("code", "")), f"'{where}': {text}{more}" if where else text + more
        lines = [x.strip() for x in self.stderr.splitlines() if x.strip()]
        return "", next((x for x in lines if "ERROR" in x or "runtime error" in x or "error:" in x),
                        lines[-1] if lines else "no message")


def default_command(root):
    """The Release build's command, wherever CMake put it."""
    places = [os.path.join(root, "build", "release", *x) for x in (("etc",), ("bin", "etc"), ("tools", "etc", "etc"))]
    return next((p for p in places if os.path.isfile(p)), places[0])


def run(command, timeout):
    begin = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return Result(None, time.perf_counter() - begin)
    result = Result(done.returncode, time.perf_counter() - begin, done.stdout.decode(errors="replace"),
                    done.stderr.decode(errors="replace"))
    for line in (result.stderr + "\n" + result.stdout).splitlines():
        if line.startswith("{"):
            try:
                result.diagnostics.append(json.loads(line))
            except json.JSONDecodeError:
                pass
    return result


def lower(etc, model, out, dims=None, extra=(), timeout=60.0):
    """Lowers and says how it went: (stage, diagnostic code, message, Result). The stage is ok, lower (a refusal with
    a message, exit 1 or 2), crash (anything else, also a broken promise about the output file) or timeout."""
    command = [etc, "lower", model, "-o", out, "--diagnostics=json", *extra]
    for name, size in sorted((dims or {}).items()):
        command += ["--dim", f"{name}={size}" if size != 0 else f"{name}=0..0"]
    result = run(command, timeout)
    exists = os.path.exists(out)
    if result.code is None:
        return "timeout", "", f"etc lower: no answer in {timeout:.0f} s", result
    code, text = result.summary()
    if result.code == 0:
        return ("ok", "", "", result) if exists else ("crash", "", "etc lower: exit 0 but no output file", result)
    if exists:
        return "crash", code, f"etc lower: exit {result.code} but an output file is there: {text}", result
    if result.code in EXIT_REFUSED and result.errors():
        return "lower", code, text, result
    return "crash", code, f"etc lower: exit {result.code}: {text}", result


def run_model(etc, model, feeds, output_dir, extra=(), timeout=60.0):
    """`etc run`: feeds maps input names to .npy files."""
    command = [etc, "run", model, "--diagnostics=json", "--output", output_dir, *extra]
    for name, path in feeds.items():
        command += ["--input", f"{name}={path}"]
    return run(command, timeout)
