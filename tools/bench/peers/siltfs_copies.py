"""siltfs with other programs that copy a tree into the mount and back: cp, rsync, and siltfs's own
import and export."""
import json
import os
import shutil
import subprocess

from peers.siltfs import Siltfs


class _Copied(Siltfs):
    """siltfs with trees that tar does not copy. There is no workload metadata, because its steps do
    not copy the trees of the corpus."""

    role = "variant"
    workloads = ("tree",)
    recompresses = False
    metadata = "nanoseconds"


class CpDevFuse(_Copied):
    name = "siltfs cp -a dev_fuse"
    key = "siltfs-cp"
    remark = "-o io_uring=off"
    transport = "dev_fuse"

    def copy_tree(self, step, source, target):
        step.run(["cp", "-a", f"{source}/.", f"{target}/"])


class CpIoUring(CpDevFuse):
    name = "siltfs cp -a io_uring"
    remark = "-o io_uring=on"
    transport = "io_uring"
    counterpart = CpDevFuse.name


class RsyncDevFuse(_Copied):
    name = "siltfs rsync dev_fuse"
    key = "siltfs-rsync"
    remark = "rsync -aHAX, -o io_uring=off"
    transport = "dev_fuse"

    def unusable(self):
        return super().unusable() or (None if shutil.which("rsync") else "rsync is not installed")

    def copy_tree(self, step, source, target):
        step.run(["rsync", "-aHAX", f"{source}/", f"{target}/"])


class RsyncIoUring(RsyncDevFuse):
    name = "siltfs rsync io_uring"
    remark = "rsync -aHAX, -o io_uring=on"
    transport = "io_uring"
    counterpart = RsyncDevFuse.name


class SiltfsImport(_Copied):
    """siltfs import and siltfs export. After the first generation, each import refers to the one
    before it, and reads only the files that have changed in the working tree."""

    name = "siltfs import"
    key = "siltfs-import"
    remark = "siltfs import with --reference, and siltfs export"

    def unusable(self):
        if reason := super().unusable():
            return reason
        absent = [command for command in ("import", "export") if not self._has(command)]
        return f"this siltfs has no command {' and '.join(absent)}" if absent else None

    def _has(self, command):
        return subprocess.run([self.program(), command, "--help"], capture_output=True, check=False).returncode == 0

    def open(self, directory):
        super().open(directory)
        self.previous = None
        self.report = os.path.join(directory, "import.json")

    def store_tree(self, step, tree, name):
        with self.mounted(step) as place:
            reference = ["--reference", f"{place}/{self.previous}"] if self.previous else []
            command = [self.program(), "import", *reference, f"{tree}/", f"{place}/{name}", "--json"]
            with step.timed("store"):
                step.run(command, stdout=self.report)
        self.previous = name

    def restore_tree(self, step, name, tree):
        with self.mounted(step) as place:
            with step.timed("restore"):
                step.run([self.program(), "export", f"{place}/{name}", tree, "--json"])

    def details(self):
        with open(self.report, encoding="utf-8") as file:
            return {**(super().details() or {}), "import": json.load(file)}
