"""The deduplicating backup programs. Each class gives the commands with which its program stores
and restores."""
import os
import re
import shutil
import subprocess

from peers.system import System


class BackupTool(System):
    """A program that is run once for each backup and each restore."""

    workloads = ("tar", "tree")
    program = None
    version_command = ("--version",)
    environment = {}

    def unusable(self):
        return None if shutil.which(self.program) else f"{self.program} is not installed"

    def version(self):
        done = subprocess.run([self.program, *self.version_command], capture_output=True, text=True, check=False)
        numbers = re.search(r"\d+(\.\d+)+|\d+", done.stdout + done.stderr)
        return numbers.group() if numbers else "unknown"

    def open(self, directory):
        self.directory = directory
        self.store = os.path.join(directory, "store")
        self.environment = {"HOME": directory, "XDG_CACHE_HOME": os.path.join(directory, "cache"),
                            **self.settings()}

    def settings(self):
        """Returns variables for the environment of every command."""
        return {}

    def create(self, step):
        self._run(step, self.init_command())

    def _run(self, step, command, **options):
        step.run(command, environment=self.environment, **options)

    def _timed(self, step, part, command, **options):
        with step.timed(part):
            self._run(step, command, **options)

    def stored_bytes(self):
        return self.disk_usage(self.store)


class Borg(BackupTool):
    name = "borg zstd,3"
    program = "borg"
    remark = "its cache outside the store is not counted"

    def settings(self):
        return {"BORG_BASE_DIR": self.directory, "BORG_RELOCATED_REPO_ACCESS_IS_OK": "yes",
                "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}

    def init_command(self):
        return ["borg", "init", "--encryption", "none", self.store]

    def store_tar(self, step, tar, name):
        self._timed(step, "store", ["borg", "create", "-C", "zstd,3", f"{self.store}::{name}", "-"], stdin=tar)

    def store_tree(self, step, tree, name):
        self._timed(step, "store", ["borg", "create", "-C", "zstd,3", f"{self.store}::{name}", "."], cwd=tree)

    def restore_tar(self, step, name, tar):
        self._timed(step, "restore", ["borg", "extract", "--stdout", f"{self.store}::{name}"], stdout=tar)

    def restore_tree(self, step, name, tree):
        os.mkdir(tree)
        self._timed(step, "restore", ["borg", "extract", f"{self.store}::{name}"], cwd=tree)


class Restic(BackupTool):
    name = program = "restic"
    remark = "its cache outside the store is not counted"
    version_command = ("version",)

    def settings(self):
        return {"RESTIC_PASSWORD": "compare", "RESTIC_REPOSITORY": self.store,
                "RESTIC_CACHE_DIR": os.path.join(self.directory, "cache")}

    def init_command(self):
        return ["restic", "init"]

    def store_tar(self, step, tar, name):
        self._timed(step, "store", ["restic", "-q", "backup", "--tag", name, "--stdin", "--stdin-filename",
                                    f"{name}.tar"], stdin=tar)

    def store_tree(self, step, tree, name):
        self._timed(step, "store", ["restic", "-q", "backup", "--tag", name, "."], cwd=tree)

    def restore_tar(self, step, name, tar):
        self._timed(step, "restore", ["restic", "-q", "dump", "--tag", name, "latest", f"/{name}.tar"], stdout=tar)

    def restore_tree(self, step, name, tree):
        self._timed(step, "restore", ["restic", "-q", "restore", "--tag", name, "latest", "--target", tree])


class Bup(BackupTool):
    name = program = "bup"

    def settings(self):
        return {"BUP_DIR": self.store}

    def init_command(self):
        return ["bup", "init"]

    def store_tar(self, step, tar, name):
        self._timed(step, "store", ["bup", "split", "-q", "-n", name], stdin=tar)

    def store_tree(self, step, tree, name):
        self._timed(step, "index", ["bup", "index", "--update", "."], cwd=tree)
        self._timed(step, "store", ["bup", "save", "-q", "--strip", "-n", name, "."], cwd=tree)

    def restore_tar(self, step, name, tar):
        self._timed(step, "restore", ["bup", "join", name], stdout=tar)

    def restore_tree(self, step, name, tree):
        self._timed(step, "restore", ["bup", "restore", "-q", "-C", tree, f"/{name}/latest/."])


class Casync(BackupTool):
    name = program = "casync"

    def create(self, step):
        os.mkdir(self.store)

    def _command(self, verb, name, kind, what):
        chunks = f"--store={self.store}/chunks"
        return ["casync", verb, chunks, f"{self.store}/{name}.{kind}", what]

    def store_tar(self, step, tar, name):
        self._timed(step, "store", self._command("make", name, "caibx", tar))

    def store_tree(self, step, tree, name):
        self._timed(step, "store", self._command("make", name, "caidx", tree))

    def restore_tar(self, step, name, tar):
        self._timed(step, "restore", self._command("extract", name, "caibx", tar))

    def restore_tree(self, step, name, tree):
        self._timed(step, "restore", self._command("extract", name, "caidx", tree))


class Zbackup(BackupTool):
    """zbackup cannot store a tree, so tar writes the tree into a pipe, and unpacks it from a
    pipe."""

    name = "zbackup lzo"
    program = "zbackup"
    remark = "trees through a pipe of tar"
    version_command = ("--help",)

    def init_command(self):
        return ["zbackup", "init", "--non-encrypted", "-o", "compression=lzo", self.store]

    def _command(self, verb, name):
        return ["zbackup", "--silent", "--non-encrypted", verb, f"{self.store}/backups/{name}"]

    def version(self):
        done = subprocess.run(["zbackup", "--help"], capture_output=True, text=True, check=False)
        return re.search(r"version ([\d.]+)", done.stdout + done.stderr).group(1)

    def store_tar(self, step, tar, name):
        self._timed(step, "store", self._command("backup", name), stdin=tar)

    def store_tree(self, step, tree, name):
        with step.timed("store"):
            step.pipe(["tar", "-C", tree, "-c", "."], self._command("backup", name), environment=self.environment)

    def restore_tar(self, step, name, tar):
        self._timed(step, "restore", self._command("restore", name), stdout=tar)

    def restore_tree(self, step, name, tree):
        os.mkdir(tree)
        with step.timed("restore"):
            step.pipe(self._command("restore", name), ["tar", "-C", tree, "-x", "-p"], environment=self.environment)
