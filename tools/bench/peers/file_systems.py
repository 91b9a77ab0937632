"""The other file systems that deduplicate: zfs-fuse, and btrfs with duperemove."""
import os
import shutil
import subprocess

from peers import measure, mounts
from peers.file_system import FileSystem, wait_until
from peers.system import first_line


def _missing(programs):
    absent = [program for program in programs if not shutil.which(program)]
    return f"{' and '.join(absent)} not installed" if absent else None


class ZfsFuse(FileSystem):
    """zfs-fuse with a pool of its own in a sparse file. The name of the pool contains the id of this
    process.

    A machine can run only one zfs-fuse at a time."""

    name = "zfs-fuse dedup=on"
    image_bytes = 64 << 30

    @property
    def key(self):
        return "zfs-fuse"

    def unusable(self):
        if missing := _missing(["zfs-fuse", "zpool", "zfs"]):
            return missing
        if self._running():
            return "another zfs-fuse runs already"
        return None

    @staticmethod
    def _running():
        return subprocess.run(["pidof", "zfs-fuse"], capture_output=True, check=False).returncode == 0

    def version(self):
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "zfs-fuse"], capture_output=True, text=True,
                              check=False) if shutil.which("dpkg-query") else None
        return done.stdout if done and done.returncode == 0 else "unknown"

    def open(self, directory):
        super().open(directory)
        self.images = os.path.join(directory, "images")
        os.mkdir(self.images)
        self.image = os.path.join(self.images, "pool")
        self.pool = f"comparepeers{os.getpid()}"
        self.daemon = None

    def before(self, step):
        if self._running():
            raise measure.CommandFailed("another zfs-fuse has been started meanwhile")
        command = ["zfs-fuse", "--no-daemon", "--no-kstat-mount"]
        self.daemon = step.start(command, daemon=True)
        wait_until(lambda: subprocess.run(["zpool", "list"], capture_output=True, check=False).returncode == 0,
                   "zfs-fuse answers")

    def after(self, step):
        if self.daemon:
            self.daemon.terminate()
            try:
                self.daemon.wait(30)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
            self.daemon = None

    def create(self, step):
        with open(self.image, "wb") as file:
            file.truncate(self.image_bytes)
        self.before(step)
        try:
            step.run(["zpool", "create", "-m", self.mountpoint, "-o", "cachefile=none", self.pool, self.image])
            for setting in ("dedup=on", "compression=on", "atime=off"):
                step.run(["zfs", "set", setting, self.pool])
            self.unmount(step)
        finally:
            mounts.unmount(self.mountpoint)
            self.after(step)

    def mount(self, step):
        step.run(["zpool", "import", "-d", self.images, "-o", "cachefile=none", self.pool])

    def unmount(self, step):
        step.run(["zpool", "export", self.pool])

    def stored_bytes(self):
        return self.disk_usage(self.image)


class Btrfs(FileSystem):
    """btrfs on a loop device. Freed space is discarded from the image, so that the image is as
    large as its data."""

    name = "btrfs zstd:3 + duperemove"
    role = "scale"
    remark = "for scale: in the kernel, so CPU time and memory are not counted"
    image_bytes = 64 << 30

    def unusable(self):
        if missing := _missing(["mkfs.btrfs", "duperemove", "fstrim"]):
            return missing
        if not os.path.exists("/dev/loop-control"):
            return "no loop devices here"
        return None

    def version(self):
        return (f"{first_line(['mkfs.btrfs', '--version']).split()[-1]}, kernel {os.uname().release}, "
                f"{first_line(['duperemove', '--version'])}")

    def open(self, directory):
        super().open(directory)
        self.image = os.path.join(directory, "image")

    def create(self, step):
        with open(self.image, "wb") as file:
            file.truncate(self.image_bytes)
        step.run(["mkfs.btrfs", "-q", self.image])

    def mount(self, step):
        step.run(["mount", "-t", "btrfs", "-o", "loop,compress=zstd:3", self.image, self.mountpoint])

    def dedupe(self, step):
        with step.timed("duperemove"):
            step.run(["duperemove", "-q", "-d", "-r", f"--hashfile={self.directory}/hashes", self.mountpoint])
        step.run(["sync", "--file-system", self.mountpoint])
        step.run(["fstrim", self.mountpoint])

    def unmount(self, step):
        step.run(["umount", self.mountpoint])

    def stored_bytes(self):
        return self.disk_usage(self.image)
