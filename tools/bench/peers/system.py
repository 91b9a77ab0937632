"""A compared system: a program or file system that stores generations of data."""
import os
import subprocess


class System:
    """One instance serves one pass: open(), create(), any number of stores and restores, close()."""

    name = None
    role = "peer"  # or "siltfs", "scale" (shown, but not what siltfs is measured against), "passthrough"
    workloads = ()
    remark = None
    memory_limit = None  # limit of its daemon, in bytes

    def __init__(self, options):
        self.options = options

    @property
    def key(self):
        """Its name on the command line."""
        return self.name.split()[0].split("+")[0]

    def unusable(self):
        """Why it cannot run here, or None."""
        return None

    def version(self):
        """Which version would run."""
        raise NotImplementedError

    def warm_up(self):
        """Reads the program itself into the page cache again, after the caches were dropped."""
        self.version()

    def open(self, directory):
        """Takes its own directory, which exists and is empty."""
        raise NotImplementedError

    def create(self, step):
        """Makes an empty store."""
        raise NotImplementedError

    def close(self):
        """Ends everything started by open() and create(); called at every exit."""

    recompresses = False  # whether stored data can be made smaller later

    def recompress(self, step):
        """Recompresses stored data as far as the system would in the background."""

    def details(self):
        """The system's own report after a generation; not measured."""
        return None

    @staticmethod
    def disk_usage(path):
        done = subprocess.run(["du", "-s", "-B1", os.fspath(path)], capture_output=True, text=True, check=True)
        return int(done.stdout.split()[0])
