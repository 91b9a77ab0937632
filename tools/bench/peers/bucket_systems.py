"""The systems that compare-bucket compares: restic, and siltfs on a bucket and on a local disk.

Each of them is a system of compare-peers whose store is below a prefix of the bucket. A store ends when
the bucket has everything. A restore begins on a machine that has nothing but the bucket.
"""
import json
import os
import shutil
import subprocess
import time

from peers.backup_tools import Restic
from peers.measure import CommandFailed
from peers.s3_bucket import Bucket
from peers.siltfs import Siltfs
from peers.siltfs_copies import SiltfsImport


class _InBucket:
    """The prefix of a system in the bucket."""

    def claim(self, options):
        self.bucket = Bucket(options.endpoint, options.bucket)
        self.prefix = f"compare-{os.getpid()}-{time.monotonic_ns()}"

    def stored_bytes(self):
        return self.bucket.measure(f"{self.prefix}/")[1]

    def remove_objects(self):
        self.bucket.remove(f"{self.prefix}/")


class ResticBucket(_InBucket, Restic):
    remark = "its cache is kept between backups, and empty at the restore"
    workloads = ("backup",)

    def settings(self):
        self.claim(self.options)
        return {**super().settings(),
                "RESTIC_REPOSITORY": f"s3:{self.options.endpoint}/{self.options.bucket}/{self.prefix}"}

    def lose_machine(self):
        shutil.rmtree(os.path.join(self.directory, "cache"), ignore_errors=True)


class SiltfsBucket(_InBucket, Siltfs):
    name = key = "siltfs"
    workloads = ("backup", "stream")
    remark = "trees through a pipe of tar; sync=bucket"
    sync = "bucket"

    def open(self, directory):
        super().open(directory)
        self.claim(self.options)
        self.url = f"s3://{self.options.bucket}/{self.prefix}"
        self.restored = False

    def create(self, step):
        step.run([self.program(), "mkfs", self.store, "--bucket", self.url, "--endpoint", self.options.endpoint,
                  "--cache", str(self.options.cache), *self.options.mkfs_options.split()])

    def mount(self, step):
        if not self.restored:
            source = [self.store]
        else:
            source = [self.url, "--endpoint", self.options.endpoint, "--cache", self.store, "--take-over"]
        options = [f"log={self.directory}/siltfs.log", f"sync={self.sync}", self.options.mount_options]
        step.run([self.program(), "mount", *source[:1], self.mountpoint, *source[1:], "-o",
                  ",".join(filter(None, options))], daemon=True)

    def unmount(self, step):
        step.run([self.program(), "sync", self.mountpoint])
        self.last_status = self.status()
        behind = self.last_status["commits_behind"] + self.last_status["waiting_segments"]
        if self.sync == "bucket" and behind:
            raise CommandFailed(f"the bucket lacks {behind} commits and segments after siltfs sync")
        super().unmount(step)

    def status(self):
        """Returns what `siltfs stat` says of the bucket."""
        done = subprocess.run([self.program(), "stat", "--json", self.mountpoint], capture_output=True, check=True)
        return json.loads(done.stdout)["bucket"]

    def details(self):
        return self.last_status

    def lose_machine(self):
        shutil.rmtree(self.store)
        self.restored = True

    recompresses = True

    def recompress(self, step):
        """Also removes the objects that were replaced."""
        with step.timed("settle"):
            step.run([self.program(), "settle", self.store])
            step.run([self.program(), "gc", self.store])


class SiltfsBucketImport(SiltfsBucket):
    name = "siltfs import"
    key = "siltfs-import"
    role = "variant"
    remark = "siltfs import with --reference, and siltfs export; sync=bucket"
    workloads = ("backup",)
    recompresses = False

    def open(self, directory):
        super().open(directory)
        self.previous = None
        self.report = os.path.join(directory, "import.json")

    store_tree = SiltfsImport.store_tree
    restore_tree = SiltfsImport.restore_tree


class SiltfsBucketLater(SiltfsBucket):
    """The bucket gets the data in the background."""

    name = "siltfs, bucket"
    key = "siltfs-later"
    role = "ingest"
    remark = "sync=local"
    workloads = ("ingest",)
    sync = "local"


class SiltfsLocal(Siltfs):
    name = "siltfs, local"
    key = "siltfs-local"
    role = "ingest"
    workloads = ("ingest",)
    remark = "a store without a bucket"

    def unmount(self, step):
        step.run([self.program(), "sync", self.mountpoint])
        super().unmount(step)

    def remove_objects(self):
        """Does nothing, because this store has no bucket."""


SYSTEMS = (SiltfsBucket, SiltfsBucketImport, ResticBucket, SiltfsBucketLater, SiltfsLocal)
