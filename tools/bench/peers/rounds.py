"""Runs each system once in each round, one after another, and records the results or the failure of
each pass."""
import os
import subprocess
import sys
import traceback

from peers import backups, compare, fio, metadata, mounts
from peers.backup_tools import Borg, Bup, Casync, Restic, Zbackup
from peers.file_systems import Btrfs, ZfsFuse
from peers.measure import CommandFailed
from peers.passthrough import PassthroughHp, PassthroughHpIoUring, PassthroughLl, PassthroughLlIoUring
from peers.siltfs import Siltfs, SiltfsDevFuse, SiltfsIoUring, SiltfsLimited
from peers.siltfs_copies import CpDevFuse, CpIoUring, RsyncDevFuse, RsyncIoUring, SiltfsImport
from peers.working_tree import WorkingTree

SYSTEMS = (Siltfs, SiltfsLimited, SiltfsDevFuse, SiltfsIoUring, CpDevFuse, CpIoUring, RsyncDevFuse, RsyncIoUring,
           SiltfsImport, Borg, Restic, Bup, Casync, Zbackup, ZfsFuse, Btrfs, PassthroughHp, PassthroughHpIoUring,
           PassthroughLl, PassthroughLlIoUring)
WORKLOADS = ("tar", "tree", "metadata", "fio")


class Rounds:
    """Adds the results of all passes to `record`, which later becomes the JSON document."""

    def __init__(self, options, generations, small_files, surroundings, record):
        self.options = options
        self.generations = generations
        self.small_files = small_files
        self.working_tree = WorkingTree(surroundings.directory)
        self.surroundings = surroundings
        self.record = record
        self.out = {}  # the failure of each (system, workload) that has failed and is not run again

    def choose(self):
        """Records which systems will run, their versions, and why others will not run."""
        self.usable = []
        for system in (kind(self.options) for kind in SYSTEMS):
            if system.key not in self.options.systems or (system.role == "limited" and not system.memory_limit):
                continue
            reason = system.unusable()
            self.record["systems"][system.name] = {
                "role": system.role, "workloads": system.workloads, "remark": system.remark,
                "counterpart": system.counterpart,
                "version": None if reason else system.version(),
                "left_out": reason and self.surroundings.without_paths(reason), "failed": {}}
            if reason:
                say(f"{system.name}: left out: {reason}")
            else:
                self.usable.append(type(system))

    def run(self):
        for number in range(self.options.rounds):
            for workload in self.options.workloads:
                kinds = [kind for kind in self.usable if workload in kind.workloads]
                turn = number % max(1, len(kinds))
                for kind in kinds[turn:] + kinds[:turn]:
                    self._attempt(kind, workload, number)

    def _attempt(self, kind, workload, number):
        if (kind.name, workload) in self.out:
            return
        say(f"round {number + 1} of {self.options.rounds}, {workload}: {kind.name}")
        try:
            figures = self._pass(kind(self.options), workload, verify_all=number == 0)
        except (CommandFailed, compare.Differs, OSError, ValueError, subprocess.SubprocessError,
                mounts.StillMounted) as error:
            wrong = isinstance(error, compare.Differs)
            words = self.surroundings.without_paths(("wrong data came back: " if wrong else "") + str(error))
            say(f"{kind.name}: {words}")
            if self.options.verbose:
                traceback.print_exc()
            self.out[kind.name, workload] = words
            self.record["systems"][kind.name]["failed"][workload] = words
            self.record["wrong_data"] |= wrong
        else:
            self.record["runs"].append({"round": number, "workload": workload, "system": kind.name, **figures})

    def _pass(self, system, workload, verify_all):
        directory = os.path.join(self.surroundings.directory, "pass")
        os.mkdir(directory)
        self.surroundings.system = system.name
        try:
            system.open(directory)
            if workload == "metadata":
                return {"steps": metadata.run(system, self.small_files, self.surroundings)}
            if workload == "fio":
                return {"jobs": fio.run(system, self.options.fio_size, self.options.fio_random_size,
                                        self.surroundings)}
            return backups.run(system, workload, self.generations, self.working_tree, self.surroundings, verify_all)
        finally:
            system.close()
            for left in (directory, os.path.join(self.surroundings.directory, "restored")):
                mounts.unmount(left)
                if os.path.lexists(left):
                    mounts.remove_tree(left)


def say(words):
    print(f"compare-peers: {words}", file=sys.stderr, flush=True)
