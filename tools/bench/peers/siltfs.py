"""siltfs, and siltfs with a fixed transport of its requests. Trees go through a pipe of tar."""
import json
import os
import subprocess

from peers import io_uring
from peers.file_system import FileSystem
from peers.system import first_line

_IO_URING = {None: "", "dev_fuse": "io_uring=off", "io_uring": "io_uring=on"}


class Siltfs(FileSystem):
    name = role = "siltfs"
    workloads = ("tar", "tree", "metadata", "fio")
    remark = "requests through io_uring if the machine offers it"
    recompresses = True
    metadata = "seconds"  # tar drops the fractions.
    transport = None  # "dev_fuse", "io_uring", or the one that the machine offers

    def unusable(self):
        if not os.access(self.program(), os.X_OK):
            return f"{self.program()} is no program: build siltfs first"
        return io_uring.not_offered() if self.transport == "io_uring" else None

    def version(self):
        return first_line([self.program(), "--version"]).split()[-1]

    def program(self):
        return os.path.join(os.path.abspath(self.options.siltfs), "siltfs")

    def open(self, directory):
        super().open(directory)
        self.store = os.path.join(directory, "store")

    def create(self, step):
        step.run([self.program(), "mkfs", self.store, *self.options.mkfs_options.split()])

    def place(self):
        return self.store

    def mount(self, step):
        options = [f"log={self.directory}/siltfs.log", self.options.mount_options, _IO_URING[self.transport]]
        step.run([self.program(), "mount", self.store, self.mountpoint, "-o", ",".join(filter(None, options))],
                 daemon=True)

    def unmount(self, step):
        step.run([self.program(), "umount", self.mountpoint])

    def stored_bytes(self):
        return self.disk_usage(self.store)

    def recompress(self, step):
        with step.timed("settle"):
            step.run([self.program(), "settle", self.store])

    def details(self):
        done = subprocess.run([self.program(), "stat", "--json", self.store], capture_output=True, text=True,
                              check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None


class SiltfsLimited(Siltfs):
    """siltfs under a memory limit, in the same run, to show the limit's effect."""

    name = "siltfs, memory limited"
    key = "siltfs"
    role = "limited"

    def __init__(self, options):
        super().__init__(options)
        self.memory_limit = options and options.memory_limit


class SiltfsDevFuse(Siltfs):
    name = "siltfs dev_fuse"
    key = "siltfs-dev_fuse"
    role = "variant"
    workloads = ("tree", "metadata")
    remark = "-o io_uring=off"
    recompresses = False
    transport = "dev_fuse"


class SiltfsIoUring(SiltfsDevFuse):
    name = "siltfs io_uring"
    key = "siltfs-io_uring"
    remark = "-o io_uring=on"
    transport = "io_uring"
    counterpart = SiltfsDevFuse.name
