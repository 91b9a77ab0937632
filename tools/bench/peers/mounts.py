"""The mount table, unmounting, and removal that never goes through a mount."""
import os
import re
import subprocess
import time


class StillMounted(Exception):
    """A directory was to be removed while something is mounted at it or below."""


def table():
    """All mounts as (what, where, type, options), the oldest first."""
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
        return [tuple(map(_unescaped, line.split()[:4])) for line in file]


def _unescaped(field):
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field)


def at_or_below(directory):
    """The mountpoints at or below a directory, the innermost and youngest first."""
    root = os.path.realpath(directory)
    inside = root.rstrip("/") + "/"
    return [where for _, where, _, _ in reversed(table()) if where == root or where.startswith(inside)]


def is_mountpoint(directory):
    return os.path.realpath(directory) in at_or_below(directory)


def unmount(directory, patience=10.0):
    """Ends every mount at or below a directory: first by unmounting, at last by detaching it from the tree."""
    deadline = time.monotonic() + patience
    while points := at_or_below(directory):
        late = time.monotonic() > deadline
        command = ["umount", "--lazy", points[0]] if late else ["umount", points[0]]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            if late:
                raise StillMounted(points[0])
            time.sleep(0.1)


def remove_tree(directory):
    """Removes a directory with its contents; refuses, and removes nothing, while a mount is left below it."""
    if points := at_or_below(directory):
        raise StillMounted(points[0])
    subprocess.run(["rm", "-rf", "--one-file-system", "--", directory], check=True)


def kind_of(path):
    """The type of the file system that a path is on."""
    path = os.path.realpath(path)
    best = ("", "")
    for _, where, kind, _ in table():
        if path == where or path.startswith(where.rstrip("/") + "/"):
            if len(where) >= len(best[0]):
                best = (where, kind)
    return best[1]
