"""What is compared: a program, or a file system, that keeps generations of data."""
import os
import subprocess


class System:
    """One instance serves one pass: open(), create(), any number of stores and restores, close()."""

    name = None
    role = "peer"  # or "siltfs", "scale" (shown, but not what siltfs is measured against), "passthrough"
    workloads = ()
    remark = None
    memory_limit = None  # of its daemon, in bytes

    def __init__(self, options):
        self.options = options

    @property
    def key(self):
        """How it is named on the command line."""
        return self.name.split()[0].split("+")[0]

    def unusable(self):
        """Why it cannot run here, or None."""
        return None

    def version(self):
        """Which version would run."""
        raise NotImplementedError

    def warm_up(self):
        """Has the program itself in the page cache, after everything was dropped from it."""
        self.version()

    def open(self, directory):
        """Takes a directory of its own, which is there and empty."""
        raise NotImplementedError

    def create(self, step):
        """Makes an empty store."""
        raise NotImplementedError

    def close(self):
        """Ends whatever open() and create() have started; at every exit."""

    recompresses = False  # whether what was stored can be made smaller later

    def recompress(self, step):
        """Makes what was stored as small as the system ever would in the background."""

    def details(self):
        """What the system itself has to say after a generation; not measured."""
        return None

    @staticmethod
    def disk_usage(path):
        done = subprocess.run(["du", "-s", "-B1", os.fspath(path)], capture_output=True, text=True, check=True)
        return int(done.stdout.split()[0])
