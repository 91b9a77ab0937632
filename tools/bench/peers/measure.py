"""One step of a benchmark: its commands, and their time, CPU time and memory.

Only the time within `timed` counts. CPU time and memory are those of all processes of the step,
including daemons and the work of daemons after the last command.
"""
import contextlib
import os
import select
import signal
import subprocess
import threading
import time

from peers import cgroups
from peers.marked_processes import MarkedProcesses

SAMPLES_PER_SECOND = 20


class CommandFailed(Exception):
    """A command of a system ended with an error."""


class _Sampler(threading.Thread):
    """Samples the resident memory of a group's processes. Keeps the peak of the sum, and the peak
    of each process."""

    def __init__(self, group):
        super().__init__(daemon=True)
        self.group = group
        self.peak = 0
        self.peak_by_name = {}
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(1 / SAMPLES_PER_SECOND):
            self.look()

    def look(self):
        self.group.observe()
        total = 0
        for pid in self.group.pids():
            with contextlib.suppress(OSError, KeyError):
                with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                    fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
                total += _bytes(fields["VmRSS"])
                name = fields["Name"]
                self.peak_by_name[name] = max(self.peak_by_name.get(name, 0), _bytes(fields["VmHWM"]))
        self.peak = max(self.peak, total)


def _bytes(kib):
    return int(kib.split()[0]) * 1024


class Step:
    """Runs commands in a new group of processes. This is a context manager, which ends all
    processes of the group."""

    def __init__(self, surroundings, memory_limit=None):
        self.surroundings = surroundings
        self.memory_limit = memory_limit
        self.parts = {}

    def __enter__(self):
        self.group = self.surroundings.new_group(self.memory_limit)
        self.sampler = _Sampler(self.group)
        self.sampler.start()
        self.machine_before = _machine_cpu_seconds()
        return self

    def __exit__(self, *_):
        self.sampler.ended.set()
        self.sampler.join()
        self._end_processes()
        self.group.close()

    def _end_processes(self):
        for send, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
            for pid in self.group.pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, send)
            deadline = time.monotonic() + patience
            while self.group.pids() and time.monotonic() < deadline:
                time.sleep(0.02)

    @contextlib.contextmanager
    def timed(self, part):
        start = time.monotonic()
        yield
        self.parts[part] = self.parts.get(part, 0) + time.monotonic() - start

    def start(self, command, daemon=False, cwd=None, environment=None, **streams):
        """Starts a command in the group. Its messages go to the log, and so does its output unless
        it is redirected."""
        self.surroundings.took_note_of(command)
        with open(self.surroundings.log, "ab") as log:
            process = subprocess.Popen(self.group.enter(command, daemon), cwd=cwd, start_new_session=True,
                                       env={**os.environ, **self.group.environment, **(environment or {})},
                                       **{"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **streams})
        self.group.started(process.pid)
        return process

    def finish(self, process, command):
        if not _ends_within(process, self.surroundings.patience):
            process.kill()
            process.wait()
            raise CommandFailed(f"{' '.join(command)}: no end after {self.surroundings.patience} s")
        code = process.wait()
        if code != 0:
            raise CommandFailed(f"{' '.join(command)}: exit code {code}: {self.surroundings.last_words()}")

    def run(self, command, stdin=None, stdout=None, **options):
        """Runs a command and waits until it has ended. `stdin` and `stdout` are paths of files."""
        with contextlib.ExitStack() as files:
            if stdin:
                options["stdin"] = files.enter_context(open(stdin, "rb"))
            if stdout:
                options["stdout"] = files.enter_context(open(stdout, "wb"))
            self.finish(self.start(command, **options), command)

    def pipe(self, first, second, **options):
        """Runs two commands at the same time. The output of the first is the input of the
        second. Both have `environment`."""
        source = self.start(first, stdout=subprocess.PIPE, environment=options.get("environment"))
        sink = self.start(second, stdin=source.stdout, **options)
        source.stdout.close()
        self.finish(source, first)
        self.finish(sink, second)

    def figures(self):
        """Returns the figures that were measured in this step until now."""
        self.sampler.look()
        return {
            "seconds": sum(self.parts.values()),
            "parts": dict(self.parts),
            "cpu_seconds": self.group.cpu_seconds(),
            "daemon_cpu_seconds": self.group.daemon_cpu_seconds(),
            "machine_cpu_seconds": _machine_cpu_seconds() - self.machine_before,
            "peak_rss_bytes": max([self.sampler.peak, *self.sampler.peak_by_name.values()]),
            "peak_rss_bytes_by_process": dict(self.sampler.peak_by_name),
            **self.group.under_limit(),
        }


def _ends_within(process, seconds):
    """Returns whether the process ends within this time. Popen.wait with a timeout checks only
    every 50 ms, which is as long as a mount takes."""
    descriptor = os.pidfd_open(process.pid)
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def _machine_cpu_seconds():
    """Returns the CPU time of the whole machine, including kernel threads. It is useful only if no
    other program runs."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def choose_groups(wanted, label, memory_limit):
    """Returns the class of groups to use on this machine. If this is not ControlGroup, also returns
    why, otherwise None."""
    if not wanted:
        return MarkedProcesses, "control groups were not wanted"
    try:
        cgroups.ControlGroup(label, memory_limit).close()
        return cgroups.ControlGroup, None
    except cgroups.Unavailable as error:
        return MarkedProcesses, str(error)
