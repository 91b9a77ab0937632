"""libfuse's examples that pass all requests through to a directory. They show the cost of FUSE
itself."""
import contextlib
import os
import resource
import shutil
import subprocess

from peers import io_uring, mounts
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
    uses_io_uring = False

    @property
    def program(self):
        return getattr(self.options, self.key) or shutil.which(self.key)

    def unusable(self):
        if not self.program:
            return f"{self.key} is not installed, nor given by --{self.key.replace('_', '-')}"
        if not os.access(self.program, os.X_OK):
            return f"{self.program} is no program"
        return self._no_io_uring() if self.uses_io_uring else None

    def _no_io_uring(self):
        help_text = subprocess.run([self.program, "--help"], capture_output=True, text=True, check=False)
        if "-o io_uring" not in help_text.stdout + help_text.stderr:
            return f"{self.key} has no option io_uring: it needs libfuse 3.18"
        return io_uring.not_offered()

    def version(self):
        return "an example of libfuse"

    def open(self, directory):
        super().open(directory)
        self.backing = os.path.join(directory, "backing")

    def create(self, step):
        os.mkdir(self.backing)

    def place(self):
        return self.backing

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
        options = ["-o", "io_uring"] if self.uses_io_uring else []
        return ["--foreground", *options, self.backing, self.mountpoint]


class PassthroughHpIoUring(PassthroughHp):
    name = "passthrough_hp io_uring"
    remark = "-o io_uring"
    uses_io_uring = True
    counterpart = PassthroughHp.name


class PassthroughLl(Passthrough):
    name = "passthrough_ll"
    remark = "-o writeback"

    def arguments(self):
        options = f"writeback,source={self.backing}" + (",io_uring" if self.uses_io_uring else "")
        return ["-f", "-o", options, self.mountpoint]


class PassthroughLlIoUring(PassthroughLl):
    name = "passthrough_ll io_uring"
    remark = "-o writeback,io_uring"
    uses_io_uring = True
    counterpart = PassthroughLl.name
