"""Groups of processes whose CPU time is summed up.

A group is a control group (version 1 or 2). If that is not possible, it is the set of processes
with a mark in their environment.
"""
import contextlib
import itertools
import os
import resource
import time

from peers import mounts

_numbers = itertools.count()
_TICKS = os.sysconf("SC_CLK_TCK")
# Run as: sh -c ENTER sh GROUP... -- COMMAND...
_ENTER = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"'


class Unavailable(Exception):
    """This machine has no such control group, or does not allow making one."""


def _write(path, words):
    with open(path, "w", encoding="ascii") as file:
        file.write(words)


def _read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def _own_place(controller):
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controller in controllers.split(","):
                return path.lstrip("/")
    return ""


def _version_1(controller):
    """The directory below which groups of a controller are made, or None."""
    for _, where, kind, options in mounts.table():
        if kind == "cgroup" and controller in options.split(","):
            own = os.path.join(where, _own_place(controller))
            return own if os.path.isdir(own) else where
    return None


def _version_2():
    return next((where for _, where, kind, _ in mounts.table() if kind == "cgroup2"), None)


class ControlGroup:
    """The control group of one step's processes. `enter` returns a command that starts another
    command in the group.

    The memory limit applies only to daemons."""

    how = "cgroup"

    def __init__(self, label, memory_limit=None):
        self.made = []
        self.environment = {}
        self.limited = None
        name = f"{label}-{next(_numbers)}"
        try:
            if accounting := _version_1("cpuacct"):
                self._make_version_1(accounting, name, memory_limit)
            elif unified := _version_2():
                self._make_version_2(unified, name, memory_limit)
            else:
                raise Unavailable("no cgroup file system is mounted")
        except OSError as error:
            self.close()
            raise Unavailable(f"no such control group can be made: {error}") from error

    def _directory(self, path):
        os.mkdir(path)
        self.made.append(path)
        return path

    def _make_version_1(self, accounting, name, memory_limit):
        self.top = self._directory(os.path.join(accounting, name))
        self.work = self.daemon = [self.top]
        self.cpu_file = os.path.join(self.top, "cpuacct.usage")
        if memory_limit:
            memory = _version_1("memory")
            if not memory:
                raise Unavailable("no memory controller is mounted")
            self.limited = self._directory(os.path.join(memory, name))
            _write(os.path.join(self.limited, "memory.limit_in_bytes"), str(memory_limit))
            self.daemon = [self.top, self.limited]

    def _make_version_2(self, unified, name, memory_limit):
        self.top = self._directory(os.path.join(unified, name))
        self.cpu_file = os.path.join(self.top, "cpu.stat")
        if memory_limit:
            _write(os.path.join(self.top, "cgroup.subtree_control"), "+memory")
        # When a group has a controller enabled for its children, only groups without children may
        # hold processes.
        self.work = [self._directory(os.path.join(self.top, "work"))]
        self.daemon = [self._directory(os.path.join(self.top, "daemon"))]
        if memory_limit:
            self.limited = self.daemon[0]
            _write(os.path.join(self.limited, "memory.max"), str(memory_limit))

    def enter(self, command, daemon):
        return ["/bin/sh", "-c", _ENTER, "sh", *(self.daemon if daemon else self.work), "--", *command]

    def pids(self):
        found = set()
        for directory in {self.top, *self.work, *self.daemon}:
            with contextlib.suppress(OSError):
                found.update(map(int, _read(os.path.join(directory, "cgroup.procs")).split()))
        return found - {0}

    def started(self, pid):
        """Does nothing, because the kernel knows the processes of the group."""

    def observe(self):
        """Does nothing, because the kernel sums up the CPU time."""

    def under_limit(self):
        """Returns the peak memory of the limited daemon, including page cache. It shows whether the
        limit was reached."""
        for name in ("memory.max_usage_in_bytes", "memory.peak") if self.limited else ():
            with contextlib.suppress(OSError):
                return {"limited_group_peak_bytes": int(_read(os.path.join(self.limited, name)))}
        return {}

    def cpu_seconds(self):
        content = _read(self.cpu_file)
        if self.cpu_file.endswith("cpu.stat"):
            return int(dict(line.split() for line in content.splitlines())["usage_usec"]) / 1e6
        return int(content) / 1e9

    def close(self):
        """Removes the group. Its processes must have ended, but the kernel may still list them for
        a moment."""
        for directory in reversed(self.made):
            for _ in range(200):
                try:
                    os.rmdir(directory)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)
        self.made = []


class MarkedProcesses:
    """Replaces a control group by the processes with a mark in their environment. Samples the CPU
    time of daemons."""

    how = "rusage"

    def __init__(self, label, memory_limit=None):
        if memory_limit:
            raise Unavailable("a memory limit needs control groups")
        self.mark = f"COMPARE_PEERS_STEP={label}-{next(_numbers)}"
        self.environment = dict([self.mark.split("=")])
        self.before = self._children()
        self.children = set()
        self.of_daemons = {}

    @staticmethod
    def _children():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    @staticmethod
    def enter(command, daemon):
        del daemon
        return command

    def pids(self):
        found = set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if self.mark.encode() in file.read().split(b"\0"):
                        found.add(int(pid))
        return found

    def started(self, pid):
        """Records a child of this process. When the child has ended, RUSAGE_CHILDREN includes its
        CPU time."""
        self.children.add(pid)

    def observe(self):
        """Samples the CPU time of daemons. RUSAGE_CHILDREN does not include it, because no process
        of the step waits for them."""
        ours = self.pids()
        for pid in ours:
            with contextlib.suppress(OSError, IndexError):
                fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
                if pid not in self.children and int(fields[1]) not in ours:
                    self.of_daemons[pid] = (int(fields[11]) + int(fields[12])) / _TICKS

    @staticmethod
    def under_limit():
        return {}

    def cpu_seconds(self):
        return self._children() - self.before + sum(self.of_daemons.values())

    def close(self):
        """Does nothing, because nothing was made."""
