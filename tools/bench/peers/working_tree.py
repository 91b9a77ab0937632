"""The working tree: the directory that all systems store in the workload tree.

It is brought from one generation to the next, as a directory changes between two backups of it. So
a file that does not change keeps its path, inode number, mtime and ctime. From these a system can
tell that it has stored the file already, without reading it.
"""
import os
import shutil
import subprocess


def unusable():
    return None if shutil.which("rsync") else "rsync is not installed"


class WorkingTree:
    def __init__(self, directory):
        self.directory = os.path.join(directory, "tree")
        self.generation = None

    def bring_to(self, generation):
        """Changes only files that differ in their contents, owners or permissions. Times are not
        compared, because the unpacked generations may have different times for the same file."""
        self.generation = None
        subprocess.run(["rsync", "-aHAX", "--no-times", "--checksum", "--delete", f"{generation.tree}/",
                        f"{self.directory}/"], check=True)
        self.generation = generation
