"""Code shared by all file systems. Each step mounts the file system, and includes all its work
until the unmount."""
import contextlib
import os
import time

from peers import measure, mounts
from peers.system import System

_BLOCK = "bs=1M"


class FileSystem(System):
    """A step's time includes mount, copy and unmount. A subclass defines how to mount and
    unmount."""

    workloads = ("tar", "tree")

    def open(self, directory):
        self.directory = directory
        self.mountpoint = os.path.join(directory, "mount")
        os.mkdir(self.mountpoint)

    def close(self):
        mounts.unmount(self.mountpoint)

    def mount(self, step):
        """Mounts at self.mountpoint, which must answer afterwards."""
        raise NotImplementedError

    def unmount(self, step):
        """Unmounts; afterwards all data is in the store."""
        raise NotImplementedError

    def before(self, step):
        """Starts what this file system needs before a mount; not timed."""

    def after(self, step):
        """Ends what before() has started."""

    def place(self):
        """Returns the path of the store, for file systems that can be discarded."""
        raise NotImplementedError

    def discard(self):
        """Removes the store, so that create() can make another one."""
        mounts.remove_tree(self.place())

    def copy_tree(self, step, source, target):
        """Copies the contents of a directory into another one, which is empty."""
        step.pipe(["tar", "-C", source, "-c", "."], ["tar", "-C", target, "-x", "-p"])

    def dedupe(self, step):
        """Deduplicates, for systems that do so in a separate step. It is called while the file
        system is mounted."""

    @contextlib.contextmanager
    def mounted(self, step):
        self.before(step)
        try:
            with step.timed("mount"):
                self.mount(step)
            if not mounts.is_mountpoint(self.mountpoint):
                raise measure.CommandFailed(f"{self.name}: nothing is mounted")
            yield self.mountpoint
            with step.timed("unmount"):
                self.unmount(step)
        finally:
            mounts.unmount(self.mountpoint)
            self.after(step)

    def store_tar(self, step, tar, name):
        with self.mounted(step) as place:
            with step.timed("store"):
                step.run(["dd", f"if={tar}", f"of={place}/{name}.tar", _BLOCK, "status=none"])
            self.dedupe(step)

    def store_tree(self, step, tree, name):
        with self.mounted(step) as place:
            os.mkdir(f"{place}/{name}")
            with step.timed("store"):
                self.copy_tree(step, tree, f"{place}/{name}")
            self.dedupe(step)

    def restore_tar(self, step, name, tar):
        with self.mounted(step) as place:
            with step.timed("restore"):
                step.run(["dd", f"if={place}/{name}.tar", f"of={tar}", _BLOCK, "status=none"])

    def restore_tree(self, step, name, tree):
        os.mkdir(tree)
        with self.mounted(step) as place:
            with step.timed("restore"):
                self.copy_tree(step, f"{place}/{name}", tree)


def wait_until(condition, what, patience=30.0):
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise measure.CommandFailed(f"{what}: not within {patience:.0f} s")
        time.sleep(0.005)
