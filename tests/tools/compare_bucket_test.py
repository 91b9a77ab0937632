#!/usr/bin/env python3
"""Tests compare-bucket with siltfs on a real mount, and a service in memory (tests/support/s3_server.py).

usage: compare_bucket_test.py SOURCE BIN [TEST...]
"""
import json
import os
import subprocess
import sys

from compare_peers_fixture import BIN, SOURCE, Scratch, main, make_corpus
from peers import bucket_report
from peers.s3_bucket import Bucket

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test-key", "AWS_SECRET_ACCESS_KEY": "test-secret"}


class ComparesBuckets(Scratch):
    def setUp(self):
        super().setUp()
        os.environ.update(CREDENTIALS)
        make_corpus(self.path("corpus"))
        self.server = subprocess.Popen([sys.executable, os.path.join(SOURCE, "tests", "support", "s3_server.py")],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        self.endpoint = f"http://127.0.0.1:{json.loads(self.server.stdout.readline())['port']}"

    def stop(self):
        self.server.communicate()

    def run_tool(self, *arguments):
        return subprocess.run(
            [os.path.join(SOURCE, "tools", "bench", "compare-bucket"), self.path("corpus"), "--endpoint", self.endpoint,
             "--siltfs", BIN, "--scratch", self.directory, "--rounds", "1", "--touch-memory", "1M", "--no-cgroups",
             "--stream-size", "320M", "--stream-cache", "256M", "--cache", "256M", "--generations", "2", "--out",
             self.path("out"), *arguments], capture_output=True, text=True, check=False)

    def test_measures_everything_and_removes_its_objects(self):
        done = self.run_tool("--systems", "siltfs,siltfs-import,siltfs-later,siltfs-local")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("out.json"), encoding="utf-8") as file:
            record = json.load(file)
        self.assertFalse(record["wrong_data"])
        self.assertEqual(sorted((run["workload"], run["system"]) for run in record["runs"]),
                         [("backup", "siltfs"), ("backup", "siltfs import"), ("ingest", "siltfs, bucket"),
                          ("ingest", "siltfs, local"), ("stream", "siltfs")])
        for run in record["runs"]:
            if run["workload"] == "backup":
                self.assertGreater(run["generations"][-1]["stored_bytes"], 500_000)
                self.assertTrue(run["restore"]["verified"])
        with open(self.path("out.md"), encoding="utf-8") as file:
            text = file.read()
        for words in ("first backup", "bytes when recompressed", "median of the pairs", "all bytes verified: yes"):
            self.assertIn(words, text)
        self.assertNotIn(self.endpoint, json.dumps(record))
        self.assertNotIn("test-secret", json.dumps(record))
        bucket = Bucket(self.endpoint, "bucket")
        self.addCleanup(bucket.connection.close)
        self.assertEqual(bucket.measure(), (0, 0))

    def test_a_failure_is_reported(self):
        self.server.stdin.write('{"secret": "another"}\n')
        self.server.stdin.flush()
        done = self.run_tool("--systems", "siltfs-local", "--workloads", "ingest")
        self.assertEqual(done.returncode, 0, done.stderr)  # It does not need the bucket.
        done = self.run_tool("--systems", "siltfs", "--workloads", "backup")
        self.assertEqual(done.returncode, 1)
        with open(self.path("out.md"), encoding="utf-8") as file:
            self.assertIn("**failed** in backup", file.read())


class TheTables(Scratch):
    @staticmethod
    def backup(system, seconds, stored):
        step = {"bytes": 70_000_000, "seconds": seconds, "stored_bytes": stored, "peak_rss_bytes_by_process": {}}
        return {"workload": "backup", "system": system, "generations": [step, step], "restore": step}

    def test_name_targets_that_are_not_met(self):
        record = {"corpus": [{"tree_bytes": 1000, "files": 1}], "runs": [
            self.backup("siltfs", 10, 90), self.backup("restic", 14, 100)]}
        text = "\n".join(bucket_report._backup(record))
        self.assertIn("first backup: 1.40 (target ≥ 1.5, **not met**)", text)
        self.assertIn("bytes in the bucket: 0.90 (target ≤ 0.8, **not met**)", text)
        self.assertIn("| first backup | 7.0 MB/s | 5.0 MB/s |", text)
        record["runs"] = [self.backup("siltfs", 5, 70), self.backup("restic", 14, 100)]
        self.assertNotIn("not met", "\n".join(bucket_report._backup(record)))


if __name__ == "__main__":
    main(__doc__)
