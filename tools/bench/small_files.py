"""A mounted store, and timed steps with many small files in it, for measurements."""

import io
import mmap
import pathlib
import subprocess
import sys
import tarfile
import time

PER_DIRECTORY = 1000


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, **more)


def output(*command, **more):
    return run(*command, stdout=subprocess.PIPE, text=True, **more).stdout


def prepare():
    """Empties the caches, and touches free memory: a virtual machine may have given it back."""
    run("sync")
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
    mmap.mmap(-1, 3 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()


def timed(step, *arguments):
    prepare()
    began = time.monotonic()
    step(*arguments)
    return time.monotonic() - began


class Siltfs:
    def __init__(self, programs, scratch):
        self.program = programs / "siltfs"
        self.store = scratch / "siltfs.store"
        self.mountpoint = scratch / "siltfs.mnt"
        self.mountpoint.mkdir()
        run(self.program, "mkfs", self.store, stdout=subprocess.DEVNULL)
        self.mount()
        self.files = self.mountpoint

    def mount(self):
        run(self.program, "mount", self.store, self.mountpoint, stderr=subprocess.DEVNULL)

    def sync(self):
        run("sync", "-f", self.mountpoint)

    def create(self, name):
        run(self.program, "snapshot", "create", self.mountpoint, name, stdout=subprocess.DEVNULL)

    def delete(self, name):
        run(self.program, "umount", self.mountpoint)
        run(self.program, "snapshot", "delete", self.store, name, stdout=subprocess.DEVNULL)
        self.mount()

    def close(self):
        run(self.program, "umount", self.mountpoint)
        run(self.program, "fsck", self.store, stdout=subprocess.DEVNULL)


def content(number):
    return (f"file {number} " * 80).encode()[:1024]


def make_tar(path, files):
    """Makes a tar file of `files` files of 1 KB, in directories of 1,000."""
    with tarfile.open(path, "w") as tar:
        for number in range(files):
            data = content(number) + str(number).encode()
            entry = tarfile.TarInfo(f"{number // PER_DIRECTORY}/{number}")
            entry.size = len(data)
            entry.mtime = 1_700_000_000
            tar.addfile(entry, io.BytesIO(data))


def unpack(system, tar, name):
    (system.files / name).mkdir()
    run("tar", "-xf", tar, "-C", system.files / name)
    system.sync()


def find(system, count):
    listed = output("find", system.files, "-xdev", "-type", "f", "-newermt", "2000-01-01", "-printf", ".")
    if len(listed) < count:
        sys.exit(f"find lists {len(listed)} files instead of {count}")


def remove(system, name):
    run("rm", "-r", system.files / name)
    system.sync()
