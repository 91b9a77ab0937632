"""Groups of processes whose CPU time is summed up: control groups, version 1 or 2."""
import contextlib
import itertools
import os
import time

from peers import mounts

_numbers = itertools.count()
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
        # The usage of a group includes that of the groups below it.
        below = self._directory(os.path.join(self.top, "daemon"))
        self.work, self.daemon = [self.top], [below]
        self.cpu_file = "cpuacct.usage"
        if memory_limit:
            memory = _version_1("memory")
            if not memory:
                raise Unavailable("no memory controller is mounted")
            self.limited = self._directory(os.path.join(memory, name))
            _write(os.path.join(self.limited, "memory.limit_in_bytes"), str(memory_limit))
            self.daemon = [below, self.limited]

    def _make_version_2(self, unified, name, memory_limit):
        self.top = self._directory(os.path.join(unified, name))
        self.cpu_file = "cpu.stat"
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
        return self._cpu_seconds(self.top)

    def daemon_cpu_seconds(self):
        """Returns the part of daemons in cpu_seconds()."""
        return self._cpu_seconds(self.daemon[0])

    def _cpu_seconds(self, directory):
        content = _read(os.path.join(directory, self.cpu_file))
        if self.cpu_file == "cpu.stat":
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
