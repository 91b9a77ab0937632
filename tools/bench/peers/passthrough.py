"""libfuse's examples that pass all requests through to a directory. They show the cost of FUSE
itself."""
import contextlib
import os
import resource
import shutil

from peers import mounts
from peers.file_system import FileSystem, wait_until


def _descriptors():
    """Returns the highest possible limit of open files. A passthrough keeps a file open for each
    file that the kernel knows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open("/proc/sys/fs/nr_open", encoding="ascii") as file:
        most = int(file.read())
    with contextlib.suppress(OSError, ValueError):  # Without CAP_SYS_RESOURCE even root may not
                                                    # raise the hard limit.
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
        hard = most
    return hard


class Passthrough(FileSystem):
    """A file system that does no work itself, so its rates show the cost of FUSE."""

    role = "passthrough"
    workloads = ("metadata", "fio")
    source_in_options = False

    @property
    def program(self):
        return getattr(self.options, self.name) or shutil.which(self.name)

    def unusable(self):
        if not self.program:
            return f"{self.name} is not installed, nor given by --{self.name.replace('_', '-')}"
        return None if os.access(self.program, os.X_OK) else f"{self.program} is no program"

    def version(self):
        return "an example of libfuse"

    def open(self, directory):
        super().open(directory)
        self.backing = os.path.join(directory, "backing")

    def create(self, step):
        os.mkdir(self.backing)

    def mount(self, step):
        self.command = ["prlimit", f"--nofile={_descriptors()}", os.path.abspath(self.program), *self.arguments()]
        self.daemon = step.start(self.command, daemon=True)
        wait_until(lambda: mounts.is_mountpoint(self.mountpoint) or self.daemon.poll() is not None, self.name)

    def unmount(self, step):
        step.run(["umount", self.mountpoint])
        step.finish(self.daemon, self.command)


class PassthroughHp(Passthrough):
    name = "passthrough_hp"

    def arguments(self):
        return ["--foreground", self.backing, self.mountpoint]


class PassthroughLl(Passthrough):
    name = "passthrough_ll"
    remark = "-o writeback"

    def arguments(self):
        return ["-f", "-o", f"writeback,source={self.backing}", self.mountpoint]
