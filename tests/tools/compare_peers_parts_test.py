#!/usr/bin/env python3
"""The parts of compare-peers that find wrong data, remove directories, measure a step, and sum up.

usage: compare_peers_parts_test.py SOURCE BIN [TEST...]

Like compare_peers_test.py, but without running siltfs.
"""
import os
import random
import shutil
import subprocess
import sys
import time
import unittest

from compare_peers_fixture import Scratch, main, make_corpus, write
from peers import cgroups, compare, measure, mounts, summary
from peers.surroundings import Surroundings


class WrongData(Scratch):
    def test_is_found_at_any_place_of_a_file(self):
        content = random.Random(7).randbytes(3 << 20)
        write(self.path("source"), content)
        for position in (0, (1 << 20) - 1, 1 << 20, len(content) - 1):
            with self.subTest(position=position):
                changed = bytearray(content)
                changed[position] ^= 0x10
                write(self.path("restored"), changed)
                with self.assertRaisesRegex(compare.Differs, f"at byte {position}$"):
                    compare.files(self.path("source"), self.path("restored"))

    def trees(self):
        make_corpus(self.path("corpus"))
        shutil.copytree(self.path("corpus", "gen0"), self.path("copy"), symlinks=True)
        return self.path("corpus", "gen0"), self.path("copy")

    def test_is_found_wherever_a_tree_differs(self):
        changes = {
            "a byte": lambda copy: write(os.path.join(copy, "read-only"), b"as it iz"),
            "a shorter file": lambda copy: os.truncate(os.path.join(copy, "folder 3", "file3"), 19_999),
            "a longer file": lambda copy: os.truncate(os.path.join(copy, "empty"), 1),
            "a file less": lambda copy: os.remove(os.path.join(copy, "empty")),
            "a file more": lambda copy: write(os.path.join(copy, "folder 0", "more"), b""),
            "permissions": lambda copy: os.chmod(os.path.join(copy, "read-only"), 0o644),
            "a link's target": lambda copy: (os.remove(os.path.join(copy, "link")),
                                             os.symlink("folder 1/file2", os.path.join(copy, "link"))),
            "a link's type": lambda copy: (os.remove(os.path.join(copy, "link")),
                                           shutil.copy(os.path.join(copy, "folder 1", "file1"),
                                                       os.path.join(copy, "link"))),
        }
        for what, change in changes.items():
            with self.subTest(what):
                source, copy = self.trees()
                compare.trees(source, copy)
                change(copy)
                with self.assertRaises(compare.Differs):
                    compare.trees(source, copy)
                shutil.rmtree(self.path("corpus"))
                shutil.rmtree(copy)


class Removal(Scratch):
    def test_refuses_while_a_mount_is_below(self):
        place = self.path("tree", "with a space")
        os.makedirs(place)
        write(self.path("tree", "before"), b"")
        subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
        try:
            write(os.path.join(place, "precious"), b"data")
            with self.assertRaises(mounts.StillMounted):
                mounts.remove_tree(self.path("tree"))
            self.assertTrue(os.path.exists(os.path.join(place, "precious")))
            self.assertTrue(os.path.exists(self.path("tree", "before")))
        finally:
            mounts.unmount(self.path("tree"))
        mounts.remove_tree(self.path("tree"))
        self.assertFalse(os.path.exists(self.path("tree")))


BUSY = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
while time.process_time() < 0.3: pass
open(sys.argv[1], "w")
time.sleep(600)
"""


class AStep(Scratch):
    def test_counts_daemons_and_ends_them(self):
        for use_cgroups in (True, False):
            with self.subTest(cgroups=use_cgroups), Surroundings(self.directory, use_cgroups) as surroundings:
                with measure.Step(surroundings) as step:
                    with step.timed("work"):
                        step.run([sys.executable, "-c", BUSY, self.path("was-busy")])
                    while not os.path.exists(self.path("was-busy")):
                        time.sleep(0.01)
                    os.remove(self.path("was-busy"))
                    figures = step.figures()
                    self.assertGreater(figures["cpu_seconds"], 0.25)
                    # A process is a daemon of a system only if the system says so.
                    self.assertLess(figures["daemon_cpu_seconds"] or 0, 0.05)
                    daemons = step.group.pids()
                    self.assertEqual(len(daemons), 1)
                self.assertTrue(all(map(self.has_ended, daemons)))

    def test_counts_what_a_daemon_takes_of_it(self):
        with Surroundings(self.directory) as surroundings, measure.Step(surroundings) as step:
            if surroundings.groups_note:
                self.skipTest(surroundings.groups_note)
            step.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], daemon=True)
            figures = step.figures()
            self.assertGreater(figures["daemon_cpu_seconds"], 0.25)
            self.assertLessEqual(figures["daemon_cpu_seconds"], figures["cpu_seconds"])

    @staticmethod
    def has_ended(pid):
        """Whether the process has ended or is exiting (PF_EXITING), even if its parent has not waited for it yet."""
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                return int(file.read().rpartition(")")[2].split()[6]) & 4 != 0
        except (FileNotFoundError, ProcessLookupError):
            return True

    def test_says_what_a_failed_command_said(self):
        with Surroundings(self.directory) as surroundings, measure.Step(surroundings) as step:
            with self.assertRaisesRegex(measure.CommandFailed, "exit code 3: out of luck"):
                step.run(["sh", "-c", "echo out of luck >&2; exit 3"])

    def test_ends_a_command_that_goes_on_for_too_long(self):
        with Surroundings(self.directory, patience=0) as surroundings, measure.Step(surroundings) as step:
            with self.assertRaisesRegex(measure.CommandFailed, "sleep 1000: no end after 0 s$"):
                step.run(["sleep", "1000"])
            self.assertFalse(step.group.pids())

    def test_keeps_a_daemon_within_its_memory(self):
        with Surroundings(self.directory) as surroundings:
            try:
                surroundings.new_group(8 << 20).close()
            except cgroups.Unavailable as error:
                self.skipTest(str(error))
            hungry = [sys.executable, "-c", "bytearray(64 << 20)"]
            with measure.Step(surroundings, 32 << 20) as step:
                step.run(hungry)
                with self.assertRaises(measure.CommandFailed):
                    step.run(hungry, daemon=True)


def made_up_pass(system, number, first, later, stored):
    def step(rate, **more):
        return {"bytes": 1e6, "seconds": 1 / rate, "cpu_seconds": 1, "peak_rss_bytes": 1,
                "peak_rss_bytes_by_process": {}, **more}
    return {"round": number, "workload": "tar", "system": system, "restore": step(100),
            "generations": [step(first, stored_bytes=stored / 2), *(step(rate, stored_bytes=stored) for rate in later)]}


class TheSummary(unittest.TestCase):
    def test_sets_medians_against_the_best_peer_that_did_not_fail(self):
        figures = {"siltfs": [(150, (300, 260, 280), 4e5), (300, (700, 100, 240), 4e5), (180, (200, 210, 220), 4e5)],
                   "slow": [(100, (50, 50, 50), 2e6)] * 3, "quick": [(120, (100, 100, 100), 1e6)] * 3,
                   "wrong": [(900, (900, 900, 900), 1)] * 3, "scale": [(800, (800, 800, 800), 1)] * 3}
        record = {"systems": {name: {"role": {"siltfs": "siltfs", "scale": "scale"}.get(name, "peer"),
                                     "failed": {"tar": "wrong data"} if name == "wrong" else {}} for name in figures},
                  "runs": [made_up_pass(name, number, *run) for name, of_system in figures.items()
                           for number, run in enumerate(of_system)]}
        found = summary.summarise(record)["tar"]
        against = found["against"]
        self.assertEqual((against["first"]["best"], against["ratio"]["best"]), ("quick", "quick"))
        self.assertAlmostEqual(against["first"]["ratio"], 180 / 120)
        self.assertAlmostEqual(against["first"]["least"], 150 / 120)
        self.assertAlmostEqual(against["first"]["most"], 300 / 120)
        self.assertAlmostEqual(against["next"]["ratio"], 240 / 100)
        self.assertAlmostEqual(found["systems"]["siltfs"]["next"]["most"], 700)
        self.assertAlmostEqual(against["ratio"]["ratio"], 1e6 / 4e5)
        self.assertEqual([against[key]["met"] for key in ("first", "next", "ratio", "restore")],
                         [True, False, True, False])
        self.assertNotIn("wrong", found["systems"])


if __name__ == "__main__":
    main(__doc__)
