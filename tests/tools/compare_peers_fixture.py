"""Fixture of the tests of compare-peers: they run in separate mounts, with a generated corpus."""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

CONTAINED = "SILTFS_TEST_CONTAINED"
SOURCE, BIN = (os.path.abspath(argument) for argument in (*sys.argv[1:3], "", "")[:2])
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "tools", "bench"))

from peers import mounts  # noqa: E402

GENERATIONS = 3


def contain():
    """Restarts the program in its own mount and process namespaces, so that nothing is left behind."""
    if CONTAINED in os.environ:
        return
    private = subprocess.run(["unshare", "--mount", "--propagation", "private", "true"], capture_output=True,
                             check=False).returncode == 0
    # Private propagation would fail if the root of a chroot is not a mount point.
    propagation = "private" if private else "unchanged"
    os.environ[CONTAINED] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", propagation, "--pid", "--fork", "--kill-child",
                          "--mount-proc", sys.executable, *sys.argv])


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def make_corpus(directory):
    """Writes three generations of 1 MB. One file in ten differs from the generation before.

    There are also an empty file, a link and a read-only file.
    """
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
    """A directory for the test, which must have no mount at the end."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="compare-peers-test-")
        self.addCleanup(self.clean_up)

    def clean_up(self):
        self.assertEqual(mounts.at_or_below(self.directory), [])
        shutil.rmtree(self.directory)

    def path(self, *names):
        return os.path.join(self.directory, *names)


def main(documentation):
    """Runs tests of the calling program. Its arguments are SOURCE, BIN and the names of tests, by default all."""
    if len(sys.argv) < 3:
        sys.exit(documentation)
    contain()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
