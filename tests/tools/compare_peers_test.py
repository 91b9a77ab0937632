#!/usr/bin/env python3
"""compare-peers measures siltfs on a small corpus, finds wrong data, and leaves nothing behind.

usage: compare_peers_test.py SOURCE BIN [TEST...]

SOURCE is the project, BIN the directory with the program siltfs; root and /dev/fuse are needed, a peer is not.
"""
import contextlib
import glob
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

CONTAINED = "SILTFS_TEST_CONTAINED"


def contain():
    """Starts this over in mount and process namespaces of its own, so that nothing is left whatever happens."""
    if CONTAINED in os.environ:
        return
    private = subprocess.run(["unshare", "--mount", "--propagation", "private", "true"], capture_output=True,
                             check=False).returncode == 0
    # In a chroot whose root is no mount point nothing can be made private.
    propagation = "private" if private else "unchanged"
    os.environ[CONTAINED] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", propagation, "--pid", "--fork", "--kill-child",
                          "--mount-proc", sys.executable, *sys.argv])


if __name__ == "__main__":
    contain()
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.dont_write_bytecode = True
    SOURCE, BIN = map(os.path.abspath, sys.argv[1:3])
    sys.path.insert(0, os.path.join(SOURCE, "tools", "bench"))

from peers import cgroups, command_line, compare, measure, mounts, rounds, summary  # noqa: E402
from peers.surroundings import Surroundings, label_of  # noqa: E402
from peers.system import System  # noqa: E402

GENERATIONS = 3


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def make_corpus(directory):
    """Three generations of 1 MB, of which a file in ten changes; with an empty file, a link and a read-only file."""
    seeded = random.Random(2024)
    contents = [seeded.randbytes(10_000) + b"text " * 2_000 for _ in range(50)]
    for generation in range(GENERATIONS):
        tree = os.path.join(directory, f"gen{generation}")
        for i, content in enumerate(contents):
            write(os.path.join(tree, f"folder {i % 7}", f"file{i}"), content)
        write(os.path.join(tree, "empty"), b"")
        write(os.path.join(tree, "read-only"), b"as it is")
        os.chmod(os.path.join(tree, "read-only"), 0o444)
        os.symlink("folder 1/file1", os.path.join(tree, "link"))
        for i in range(generation, 50, 10):
            contents[i] = seeded.randbytes(10_000) + contents[i][10_000:]


class Scratch(unittest.TestCase):
    """A directory for the test, which must be without a mount in the end."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="compare-peers-test-")
        self.addCleanup(self.clean_up)

    def clean_up(self):
        self.assertEqual(mounts.at_or_below(self.directory), [])
        shutil.rmtree(self.directory)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def arguments(self, *more):
        os.makedirs(self.path("scratch"), exist_ok=True)
        if not os.path.isdir(self.path("corpus")):
            make_corpus(self.path("corpus"))
        return ["--siltfs", BIN, "--scratch", self.path("scratch"), "--out", self.path("out", "peers"), *more,
                self.path("corpus")]

    def run_program(self, *more):
        program = os.path.join(SOURCE, "tools", "bench", "compare-peers")
        return subprocess.run([program, *self.arguments(*more)], capture_output=True, text=True, check=False)

    def record(self):
        with open(self.path("out", "peers.json"), encoding="utf-8") as file:
            return json.load(file)

    def assert_nothing_left(self):
        self.assertEqual(mounts.at_or_below(self.directory), [])
        self.assertEqual(os.listdir(self.path("scratch")), [])
        self.assertEqual(glob.glob(f"/sys/fs/cgroup/**/{label_of(self.path('scratch'))}*", recursive=True), [])


class AComparison(Scratch):
    def test_measures_siltfs_and_names_who_is_missing(self):
        done = self.run_program("--rounds", "1", "--systems", "siltfs,passthrough_hp", "--passthrough-hp",
                                self.path("missing", "passthrough_hp"), "--workloads", "tar,tree,metadata")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_nothing_left()
        record = self.record()
        self.assertLessEqual({"machine", "options", "corpus", "systems", "runs", "commands", "summary", "notes"},
                             set(record))
        self.assertEqual([run["workload"] for run in record["runs"]], ["tar", "tree", "metadata"])
        for run in record["runs"][:2]:
            self.assertEqual([step["generation"] for step in run["generations"]], ["gen0", "gen1", "gen2"])
            for step in [*run["generations"], run["restore"]]:
                self.assert_measured(step, {"mount", "unmount"})
            self.assertTrue(run["restore"]["verified"])
            for step in run["generations"]:
                self.assertGreater(step["stored_bytes"], 500_000)
        for name, step in record["runs"][2]["steps"].items():
            self.assert_measured(step, {"mount", "work", "unmount"})
            self.assertEqual(step["files"], 52, name)
            self.assertGreater(step["files_per_s"], 0)
        # Generations share nine files of ten.
        self.assertGreater(record["summary"]["tree"]["systems"]["siltfs"]["ratio"]["median"], 2)
        self.assertIn("passthrough_hp: left out", done.stdout)
        for name in os.listdir(self.path("out")):
            with open(self.path("out", name), encoding="utf-8") as file:
                self.assertNotIn(self.directory, file.read(), name)
        self.assertIn("peers-tar-throughput.svg", os.listdir(self.path("out")))

    def assert_measured(self, step, parts):
        self.assertLessEqual(parts, set(step["parts"]))
        self.assertAlmostEqual(step["seconds"], sum(step["parts"].values()))
        self.assertGreater(step["seconds"], 0)
        self.assertGreater(step["cpu_seconds"], 0)
        self.assertGreater(step["peak_rss_bytes"], 1 << 20)
        self.assertIn("siltfs", step["peak_rss_bytes_by_process"])

    def test_without_control_groups_says_so(self):
        done = self.run_program("--rounds", "1", "--systems", "siltfs", "--workloads", "tar", "--generations", "1",
                                "--no-cgroups")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Note: CPU seconds are those of rusage", done.stdout)
        self.assert_measured(self.record()["runs"][0]["generations"][0], {"store"})

    def test_puts_everything_away_when_interrupted(self):
        program = os.path.join(SOURCE, "tools", "bench", "compare-peers")
        command = [program, *self.arguments("--rounds", "1000", "--systems", "siltfs", "--workloads", "tar")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and not mounts.at_or_below(self.path("scratch")):
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            _, messages = process.communicate()
        self.assertEqual(process.returncode, 130, messages)
        self.assert_nothing_left()
        self.assertFalse(os.path.exists(self.path("out")))


class Flipping(System):
    """Keeps copies, and gives one byte back changed."""

    name = "flipping"
    workloads = ("tar",)

    def version(self):
        return "0"

    def open(self, directory):
        self.store = directory

    def create(self, step):
        pass

    def store_tar(self, step, tar, name):
        with step.timed("store"):
            step.run(["cp", tar, os.path.join(self.store, name)])

    def restore_tar(self, step, name, tar):
        with step.timed("restore"):
            step.run(["cp", os.path.join(self.store, name), tar])
        with open(tar, "r+b") as file:
            file.seek(700_000)
            byte = file.read(1)[0]
            file.seek(700_000)
            file.write(bytes([byte ^ 1]))

    def stored_bytes(self):
        return self.disk_usage(self.store)


class WrongData(Scratch):
    def test_of_a_system_fails_the_run(self):
        known, rounds.SYSTEMS = rounds.SYSTEMS, (Flipping,)
        self.addCleanup(setattr, rounds, "SYSTEMS", known)
        of_command_line, command_line.SYSTEMS = command_line.SYSTEMS, (Flipping,)
        self.addCleanup(setattr, command_line, "SYSTEMS", of_command_line)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            code = command_line.main("", self.arguments("--rounds", "1", "--workloads", "tar"))
        self.assertEqual(code, 1)
        record = self.record()
        self.assertTrue(record["wrong_data"])
        self.assertIn("at byte 700000", record["systems"]["flipping"]["failed"]["tar"])
        self.assertEqual(record["runs"], [])
        self.assert_nothing_left()

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
                    self.assertGreater(step.figures()["cpu_seconds"], 0.25)
                    daemons = step.group.pids()
                    self.assertEqual(len(daemons), 1)
                self.assertTrue(all(map(self.has_ended, daemons)))

    @staticmethod
    def has_ended(pid):
        """Gone, or past all that it could still do (PF_EXITING), though perhaps not yet waited for."""
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                return int(file.read().rpartition(")")[2].split()[6]) & 4 != 0
        except (FileNotFoundError, ProcessLookupError):
            return True

    def test_says_what_a_failed_command_said(self):
        with Surroundings(self.directory) as surroundings, measure.Step(surroundings) as step:
            with self.assertRaisesRegex(measure.CommandFailed, "exit code 3: out of luck"):
                step.run(["sh", "-c", "echo out of luck >&2; exit 3"])

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
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
