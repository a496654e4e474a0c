"""Runs commands and says how long they took and how much memory of their own they held.

Memory: the kernel keeps a high-water mark only for all resident pages (VmHWM), which includes pages of mapped files;
a compiler that maps its weights shows the whole model there although those pages are the page cache's and can be
dropped at any moment. What counts against the machine is anonymous memory (heap, stacks): RssAnon in
/proc/PID/status, read every millisecond while the process lives. A peak shorter than that can be missed, so the
figure is a lower bound; VmHWM is reported beside it (wait4's ru_maxrss would be the parent's where that was larger
before the exec, so it is not used).
"""
import dataclasses
import pathlib
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
