#!/usr/bin/env python3
"""The parts of compare-peers that use siltfs in several ways: the working tree, transports, import.

usage: compare_peers_siltfs_test.py SOURCE BIN [TEST...]

Like compare_peers_test.py, but without running siltfs.
"""
import contextlib
import os
import shutil
import subprocess
import types
import unittest
from unittest import mock

from compare_peers_fixture import Scratch, main, make_corpus, write
from peers import compare, corpus, io_uring, rounds, summary
from peers.passthrough import PassthroughHpIoUring
from peers.siltfs import Siltfs, SiltfsDevFuse, SiltfsIoUring
from peers.siltfs_copies import SiltfsImport
from peers.working_tree import WorkingTree


class TheWorkingTree(Scratch):
    def state(self, tree):
        found = {}
        for parent, _, names in os.walk(tree.directory):
            for name in names:
                state = os.lstat(os.path.join(parent, name))
                path = os.path.relpath(os.path.join(parent, name), tree.directory)
                found[path] = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        return found

    def test_changes_only_what_differs_between_generations(self):
        make_corpus(self.path("corpus"))
        # All files have times and inode numbers of their own in each generation.
        os.utime(self.path("corpus", "gen1", "folder 1", "file1"), (1, 1))
        write(self.path("corpus", "gen1", "folder 0", "more"), b"more")
        os.remove(self.path("corpus", "gen1", "empty"))
        os.chmod(self.path("corpus", "gen1", "read-only"), 0o400)
        first, second, _ = corpus.read(self.path("corpus"), None)
        tree = WorkingTree(self.directory)
        tree.bring_to(first)
        compare.trees(first.tree, tree.directory)
        before = self.state(tree)
        tree.bring_to(second)
        compare.trees(second.tree, tree.directory)
        after = self.state(tree)
        self.assertEqual({path for path in before.keys() & after.keys() if before[path] != after[path]},
                         {f"folder {i % 7}/file{i}" for i in range(0, 50, 10)} | {"read-only"})
        self.assertEqual(before["read-only"][0], after["read-only"][0])


class OtherMetadata(Scratch):
    def test_is_found(self):
        changes = {
            "an owner": lambda copy: os.chown(os.path.join(copy, "empty"), 1, -1),
            "an attribute": lambda copy: os.setxattr(os.path.join(copy, "empty"), "user.more", b"1"),
            "no second name": lambda copy: (os.remove(os.path.join(copy, "empty")),
                                            shutil.copy2(os.path.join(copy, "twin"), os.path.join(copy, "empty"))),
            "a time of a directory": lambda copy: os.utime(os.path.join(copy, "folder 1"), (5, 7)),
        }
        source, copy = self.path("source"), self.path("copy")
        for name in ("empty", "folder 1/file"):
            write(os.path.join(source, name), b"")
        os.link(os.path.join(source, "empty"), os.path.join(source, "twin"))
        for what, change in changes.items():
            with self.subTest(what):
                subprocess.run(["cp", "-a", source, copy], check=True)
                compare.metadata(source, copy, "nanoseconds")
                change(copy)
                with self.assertRaisesRegex(compare.Differs, "other metadata"):
                    compare.metadata(source, copy, "seconds")
                shutil.rmtree(copy)

    def test_of_times_is_found_in_the_unit_that_is_asked_for(self):
        source, copy = self.path("source"), self.path("copy")
        write(os.path.join(source, "file"), b"")
        subprocess.run(["cp", "-a", source, copy], check=True)
        for path, nanoseconds in ((source, 5_000_000_001), (copy, 5_000_000_002)):
            os.utime(os.path.join(path, "file"), ns=(nanoseconds, nanoseconds))
        compare.metadata(source, copy, "seconds")
        with self.assertRaises(compare.Differs):
            compare.metadata(source, copy, "nanoseconds")
        os.utime(os.path.join(copy, "file"), (9, 9))
        compare.metadata(source, copy, None)


class IoUring(Scratch):
    def setUp(self):
        super().setUp()
        write(self.path("bin", "siltfs"), b"#!/bin/sh\n")
        write(self.path("bin", "old"), b"#!/bin/sh\necho '    -o clone_fd'\n")
        write(self.path("bin", "new"), b"#!/bin/sh\necho '    -o io_uring            enable io-uring' >&2\n")
        for name in ("siltfs", "old", "new"):
            os.chmod(self.path("bin", name), 0o755)

    def reasons(self, setting, passthrough):
        if setting is not None:
            write(self.path("setting"), setting)
        options = types.SimpleNamespace(siltfs=self.path("bin"), passthrough_hp=self.path("bin", passthrough))
        with mock.patch.object(io_uring, "SETTING", self.path("setting")):
            return [kind(options).unusable() for kind in (Siltfs, SiltfsDevFuse, SiltfsIoUring, PassthroughHpIoUring)]

    def test_is_used_only_if_the_kernel_and_the_program_can(self):
        none = self.reasons(None, "new")
        self.assertEqual(none[:2], [None, None])
        self.assertRegex(none[2], "no FUSE over io_uring")
        off = self.reasons(b"N\n", "new")
        self.assertEqual(off[:2], [None, None])
        self.assertRegex(off[2], "enable_uring.* is not Y")
        self.assertEqual(off[2], off[3])
        self.assertEqual(self.reasons(b"Y\n", "new"), [None] * 4)
        self.assertRegex(self.reasons(b"Y\n", "old")[3], "no option io_uring")

    def test_has_a_counterpart_for_each_system(self):
        names = {kind.name: kind for kind in rounds.SYSTEMS}
        self.assertEqual(len(names), len(rounds.SYSTEMS))
        pairs = [kind for kind in rounds.SYSTEMS if kind.counterpart]
        self.assertEqual([kind.name.endswith(" io_uring") for kind in pairs], [True] * 5)
        for kind in pairs:
            self.assertLess(rounds.SYSTEMS.index(names[kind.counterpart]), rounds.SYSTEMS.index(kind))


def small_files_pass(system, number, rate, cpu):
    return {"round": number, "workload": "metadata", "system": system,
            "steps": {name: {"files_per_s": rate, "daemon_cpu_seconds": cpu} for name in ("untar", "cp")}}


class TheSummary(unittest.TestCase):
    def summarise(self, *passes):
        record = {"systems": {name: {"role": "variant", "counterpart": counterpart, "failed": {}}
                              for name, counterpart in (("device", None), ("rings io_uring", "device"))},
                  "runs": passes}
        return summary.summarise(record)["metadata"]

    def test_sets_io_uring_against_the_device(self):
        found = self.summarise(small_files_pass("device", 0, 100, 2), small_files_pass("rings io_uring", 0, 150, 1),
                               small_files_pass("device", 1, 200, 4), small_files_pass("rings io_uring", 1, 400, 3))
        pair = found["transports"]["rings io_uring"]
        self.assertEqual(pair["counterpart"], "device")
        self.assertEqual(list(pair["ratios"]), ["untar", "untar, CPU of the daemon", "cp", "cp, CPU of the daemon"])
        self.assertEqual(pair["ratios"]["cp"], {"ratio": 275 / 150, "least": 1.5, "most": 2})
        self.assertEqual(pair["ratios"]["cp, CPU of the daemon"], {"ratio": 2 / 3, "least": 0.5, "most": 0.75})
        self.assertEqual(found["daemon_cpu"]["device"]["untar"]["median"], 3)

    def test_has_no_cpu_of_the_daemon_without_control_groups(self):
        found = self.summarise(small_files_pass("device", 0, 100, None), small_files_pass("rings io_uring", 0, 50, 1))
        self.assertEqual(found["transports"]["rings io_uring"]["ratios"],
                         {step: {"ratio": 0.5, "least": 0.5, "most": 0.5} for step in ("untar", "cp")})
        self.assertEqual(list(found["daemon_cpu"]), ["rings io_uring"])


class Recorder:
    """Takes the commands of a step, and runs none."""

    def __init__(self):
        self.commands = []

    def run(self, command, **_):
        self.commands.append(command[1:])

    @staticmethod
    def timed(_):
        return contextlib.nullcontext()


class AnImport(unittest.TestCase):
    def test_refers_to_the_generation_before(self):
        system = SiltfsImport(types.SimpleNamespace(siltfs="bin"))
        system.previous, system.report, step = None, "report", Recorder()
        with mock.patch.object(system, "mounted", lambda _: contextlib.nullcontext("M")):
            for name in ("gen0", "gen1", "gen2"):
                system.store_tree(step, "T", name)
            system.restore_tree(step, "gen2", "R")
        self.assertEqual(step.commands, [["import", "T/", "M/gen0", "--json"],
                                         ["import", "--reference", "M/gen0", "T/", "M/gen1", "--json"],
                                         ["import", "--reference", "M/gen1", "T/", "M/gen2", "--json"],
                                         ["export", "M/gen2", "R", "--json"]])


if __name__ == "__main__":
    main(__doc__)
