"""Runs commands and says how long they took and how much memory of their own they held.

Memory: the kernel keeps a high-water mark only for all resident pages (VmHWM), which includes pages of mapped files;
a compiler that maps its weights shows the whole model there although those pages are the page cache's and can be
dropped at any moment. What counts against the machine is anonymous memory (heap, stacks): RssAnon in
/proc/PID/status, read every millisecond while the process lives. A peak shorter than that can be missed, so the
figure is a lower bound; VmHWM is reported beside it (wait4's ru_maxrss would be the parent's where that was larger
before the exec, so it is not used).
"""
import dataclasses
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import tempfile
import threading
import time


@dataclasses.dataclass
class Run:
    seconds: float
    anonymous: int = 0  # peak RssAnon in bytes; 0 when memory was not asked for
    resident: int = 0   # VmHWM, the peak of all resident pages, in bytes; likewise


class CommandFailed(Exception):
    pass


def _watch(pid, stop, peak):
    status = pathlib.Path(f"/proc/{pid}/status")
    while not stop.is_set():
        try:
            text = status.read_text()
        except OSError:
            return
        for line in text.splitlines():
            for i, field in enumerate(("RssAnon:", "VmHWM:")):
                if line.startswith(field):
                    peak[i] = max(peak[i], int(line.split()[1]) * 1024)
        time.sleep(0.001)


def run(command, memory=False):
    """One run of an argument list; raises CommandFailed with the end of its error output."""
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=errors)
        peak, stop = [0, 0], threading.Event()
        watcher = threading.Thread(target=_watch, args=(process.pid, stop, peak)) if memory else None
        if watcher:
            watcher.start()
        process.wait()
        seconds = time.perf_counter() - start
        if watcher:
            stop.set()
            watcher.join()
        if process.returncode:
            errors.seek(0)
            tail = errors.read()[-600:].decode(errors="replace").strip()
            raise CommandFailed(f"{' '.join(map(str, command))}: exit {process.returncode}: {tail}")
    return Run(seconds, *peak)


def interleaved(commands, outputs, repeat):
    """{name: [Run]}: the named commands in turn, `repeat` rounds after one round to warm the caches.

    outputs (paths) are removed before each run, outside the measured time, so that nobody pays for a truncate.
    """
    runs = {name: [] for name in commands}
    for i in range(repeat + 1):
        for name, command in commands.items():
            for path in outputs:
                pathlib.Path(path).unlink(missing_ok=True)
            result = run(command)
            if i:
                runs[name].append(result)
    for path in outputs:
        pathlib.Path(path).unlink(missing_ok=True)
    return runs


def fastest(runs):
    return min(r.seconds for r in runs)


def middle(runs):
    return statistics.median(r.seconds for r in runs)


def processor():
    """The name that the kernel has for the CPU."""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def write_result(folder, parts):
    """Results of a benchmark as JSON, with when and where they were measured; tools/figures reads them."""
    now = datetime.datetime.now(datetime.timezone.utc)
    result = {"time": now.isoformat(timespec="seconds"), "machine": platform.machine(), "cpu": processor(),
              "processors": os.cpu_count(), "parts": parts}
    path = folder / f"bench-{now:%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def installed_bytes(names):
    """Size of the installed packages of these names and of all that they require."""
    total, seen, todo = 0, set(), list(names)
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # wanted on other systems, or by an extra that nobody asked for
        for requirement in package.requires or ():
            if "extra ==" not in requirement:
                todo.append(re.match(r"[A-Za-z0-9._-]+", requirement)[0])
        for file in package.files or ():
            path = pathlib.Path(package.locate_file(file))
            total += path.stat().st_size if path.is_file() else 0
    return total


def linked_bytes(command):
    """Size of a command and of the shared libraries that it is linked with, the C library's left out."""
    text = subprocess.run(["ldd", str(command)], check=True, capture_output=True, text=True).stdout
    paths = [pathlib.Path(word) for line in text.splitlines() for word in line.split() if word.startswith("/")]
    system = re.compile(r"(libc|libm|libgcc_s|libpthread|ld-linux[^.]*)\.so")
    return sum(p.stat().st_size for p in [pathlib.Path(command), *paths] if not system.match(p.name))
