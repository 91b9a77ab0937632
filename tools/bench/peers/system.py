"""A compared system: a program or file system that stores generations of data."""
import os
import subprocess


def first_line(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).split("\n", 1)[0].strip()


class System:
    """An instance is used for one pass: open(), create(), any number of stores and restores,
    close()."""

    name = None
    # "peer", "passthrough", "siltfs", "limited" (siltfs with a memory limit), "variant" (siltfs with
    # another transport or another copying program), or "scale". The figures of the last two are
    # shown, but siltfs is not compared with them.
    role = "peer"
    workloads = ()
    remark = None
    memory_limit = None  # limit of its daemon, in bytes
    # For a system that uses io_uring: the name of the same system that uses /dev/fuse.
    counterpart = None
    # In which unit a restored tree has the times of its source: "seconds" or "nanoseconds". None if
    # the metadata of restored trees is not compared.
    metadata = None

    def __init__(self, options):
        self.options = options

    @property
    def key(self):
        """Returns the system's name in the option --systems."""
        return self.name.split()[0].split("+")[0]

    def unusable(self):
        """Returns why the system cannot run on this machine, or None if it can."""
        return None

    def version(self):
        """Returns the version of the installed program."""
        raise NotImplementedError

    def warm_up(self):
        """Reads the program itself into the page cache again, after the caches were dropped."""
        self.version()

    def open(self, directory):
        """Gives the system a directory of its own, which exists and is empty."""
        raise NotImplementedError

    def create(self, step):
        """Makes an empty store."""
        raise NotImplementedError

    def close(self):
        """Ends everything that open() and create() have started. It is also called after a
        failure."""

    recompresses = False  # whether stored data can be made smaller later

    def recompress(self, step):
        """Recompresses the stored data that the system would recompress in the background."""

    def details(self):
        """Returns the system's own report after a generation. The call is not measured."""
        return None

    @staticmethod
    def disk_usage(path):
        done = subprocess.run(["du", "-s", "-B1", os.fspath(path)], capture_output=True, text=True, check=True)
        return int(done.stdout.split()[0])
