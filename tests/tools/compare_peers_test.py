#!/usr/bin/env python3
"""compare-peers measures siltfs on a small corpus, finds wrong data, and leaves nothing behind.

usage: compare_peers_test.py SOURCE BIN [TEST...]

SOURCE is the project, BIN the directory with the program siltfs. Needs root and /dev/fuse, but no peer.
"""
import contextlib
import glob
import io
import json
import os
import signal
import subprocess
import time

import compare_peers_fixture as fixture
from compare_peers_fixture import BIN, SOURCE
from peers import command_line, mounts, rounds
from peers.surroundings import label_of
from peers.system import System


class Run(fixture.Scratch):
    """A test that runs the whole program."""

    def arguments(self, *more):
        os.makedirs(self.path("scratch"), exist_ok=True)
        if not os.path.isdir(self.path("corpus")):
            fixture.make_corpus(self.path("corpus"))
        return ["--touch-memory", "1M", "--siltfs", BIN, "--scratch", self.path("scratch"),
                "--out", self.path("out", "peers"), *more, self.path("corpus")]

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


class AComparison(Run):
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
            # Do not demand memory samples: recompressing so little data may end between two
            # samples.
            self.assert_timed(run["settled"], {"settle"})
            # Recompression takes only sealed segments, and this corpus fills none. So the store does
            # not get smaller. A mount may add some metadata.
            before = run["generations"][-1]["stored_bytes"]
            self.assertAlmostEqual(run["settled"]["stored_bytes"], before, delta=before / 10)
            self.assert_measured(run["restore_settled"], {"mount", "restore", "unmount"})
            self.assertTrue(run["restore_settled"]["verified"])
            for step in run["generations"]:
                self.assertGreater(step["stored_bytes"], 500_000)
        self.assertEqual(list(record["runs"][2]["steps"]), ["untar", "cp", "find", "rm"])
        for name, step in record["runs"][2]["steps"].items():
            self.assert_measured(step, {"mount", "work", "unmount"})
            self.assertEqual(step["files"], 52, name)
            self.assertGreater(step["files_per_s"], 0)
        # Two generations share nine of ten files.
        self.assertGreater(record["summary"]["tree"]["systems"]["siltfs"]["ratio"]["median"], 2)
        self.assertIn("passthrough_hp: left out", done.stdout)
        self.assertIn("| settled afterwards |", done.stdout)
        for name in os.listdir(self.path("out")):
            with open(self.path("out", name), encoding="utf-8") as file:
                self.assertNotIn(self.directory, file.read(), name)
        self.assertIn("peers-tar-throughput.svg", os.listdir(self.path("out")))

    def test_measures_siltfs_with_other_programs_and_transports(self):
        done = self.run_program("--rounds", "1", "--systems", "siltfs-dev_fuse,siltfs-io_uring,siltfs-cp,siltfs-import",
                                "--workloads", "tree,metadata", "--generations", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_nothing_left()
        record = self.record()
        systems = record["systems"]
        left_out = {name for name, system in systems.items() if system["left_out"]}
        # A kernel without io_uring and a siltfs without export are reasons to leave a system out.
        self.assertLessEqual(left_out, {name for name in systems if name.endswith(" io_uring")} | {"siltfs import"})
        for name in left_out:
            self.assertRegex(systems[name]["left_out"], "io_uring|command")
        measured = {workload: [run["system"] for run in record["runs"] if run["workload"] == workload]
                    for workload in ("tree", "metadata")}
        self.assertEqual(measured["tree"], [name for name in systems if name not in left_out])
        self.assertEqual(measured["metadata"], [name for name in ("siltfs dev_fuse", "siltfs io_uring")
                                                if name not in left_out])
        for run in record["runs"]:
            if run["system"] == "siltfs import":
                # There are 52 files, and five of them differ.
                self.assertEqual(run["generations"][1]["details"]["import"]["files_unchanged"], 47)
            for step in run.get("steps", {}).values():
                self.assert_measured(step, {"mount", "work", "unmount"})
        for workload, figure in (("tree", "first backup"), ("metadata", "cp")):
            if "siltfs io_uring" not in left_out:
                self.assertIn(figure, record["summary"][workload]["transports"]["siltfs io_uring"]["ratios"])
        self.assertRegex(done.stdout, r"\| siltfs dev_fuse \|.*\| [\d.]+ / [\d.]+ / [\d.]+ / [\d.]+ \|")

    def assert_measured(self, step, parts):
        self.assert_timed(step, parts)
        self.assertGreater(step["peak_rss_bytes"], 1 << 20)
        self.assertIn("siltfs", step["peak_rss_bytes_by_process"])

    def assert_timed(self, step, parts):
        self.assertLessEqual(parts, set(step["parts"]))
        self.assertAlmostEqual(step["seconds"], sum(step["parts"].values()))
        self.assertGreater(step["seconds"], 0)
        self.assertGreater(step["cpu_seconds"], 0)

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
    """A system that stores copies of files, and changes one byte when it restores a file."""

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


class WrongData(Run):
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


if __name__ == "__main__":
    fixture.main(__doc__)
