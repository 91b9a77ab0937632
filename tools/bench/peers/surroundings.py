"""State shared by all steps: the scratch directory, the log of the commands, the page cache."""
import contextlib
import mmap
import os
import re
import subprocess
import tempfile
import time
import zlib

from peers import measure, mounts

TOUCHED_BYTES = 3 << 30


def label_of(scratch):
    """Returns the common prefix of the names of all control groups of runs that use this scratch
    directory."""
    return f"compare-peers-{zlib.crc32(os.path.realpath(scratch).encode()):08x}-"


class Surroundings:
    """A context manager that makes its own directory in the scratch directory, and removes it at
    the end."""

    def __init__(self, scratch, use_cgroups=True, memory_limit=None, patience=3600, touched_bytes=TOUCHED_BYTES):
        self.scratch = os.path.realpath(scratch)
        self.patience = patience
        self.touched_bytes = touched_bytes
        self.label = label_of(self.scratch) + str(os.getpid())
        self.groups, self.groups_note = measure.choose_groups(use_cgroups, self.label, memory_limit)
        if memory_limit:
            self.new_group(memory_limit).close()  # Fails now if that is impossible.
        self.caches_note = None
        self.commands = {}
        self.system = None
        self.places = {}

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="compare-peers-", dir=self.scratch)
        self.log = os.path.join(self.directory, "log")
        self.call("SCRATCH", self.directory)
        return self

    def __exit__(self, *_):
        mounts.unmount(self.directory)
        mounts.remove_tree(self.directory)

    def call(self, name, path):
        """Makes without_paths replace `path` by `name`."""
        self.places[os.path.realpath(path)] = self.places[os.path.abspath(path)] = name

    def without_paths(self, words):
        for path in sorted(self.places, key=len, reverse=True):
            words = words.replace(path, self.places[path])
        return words

    def new_group(self, memory_limit):
        return self.groups(self.label, memory_limit)

    def took_note_of(self, command):
        """Records each command of a system once. Commands that differ only in the generation count
        as the same command."""
        words = re.sub(r"gen\d+", "genI", self.without_paths(" ".join(command)))
        known = self.commands.setdefault(self.system, [])
        if words not in known:
            known.append(words)

    def last_words(self):
        with open(self.log, "rb") as log:
            log.seek(max(0, os.path.getsize(self.log) - 4000))
            lines = log.read().decode(errors="replace").split("\n")
        return "; ".join([line.strip() for line in lines if line.strip()][-3:])

    def settle(self):
        """Waits until all data is on the disk, so that no step pays for the previous one. Returns
        the seconds."""
        start = time.monotonic()
        subprocess.run(["sync", "--file-system", self.directory], check=True)
        return time.monotonic() - start

    def drop_caches(self):
        subprocess.run(["sync"], check=True)
        try:
            with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
                file.write("3")
        except OSError as error:
            self.caches_note = f"caches could not be dropped ({error.strerror}): nothing here is cold"

    def touch_memory(self):
        """Touches as much free memory as a step may use. It is called before each step. A virtual
        machine may have returned free memory to its host. Without this call, the time to get it
        back would count for the first step that uses more memory than the steps before it."""
        size = min(self.touched_bytes, _available_bytes() // 2)
        with contextlib.suppress(OSError):
            mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()

    def warm(self, path):
        """Reads a file, or all files of a tree, into the page cache."""
        for name in [path] if os.path.isfile(path) else _files_below(path):
            with open(name, "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass


def _available_bytes():
    with open("/proc/meminfo", encoding="ascii") as file:
        return int(re.search(r"^MemAvailable:\s*(\d+) kB", file.read(), re.MULTILINE).group(1)) * 1024


def _files_below(directory):
    for parent, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(parent, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path
