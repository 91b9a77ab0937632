"""Reads the mount table, unmounts, and removes directories without removing files in mounts below
them."""
import os
import re
import subprocess
import time


class StillMounted(Exception):
    """Raised if a directory cannot be removed because a file system is mounted at it or below
    it."""


def table():
    """Returns all mounts as (source, mountpoint, type, options), the oldest first."""
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
        return [tuple(map(_unescaped, line.split()[:4])) for line in file]


def _unescaped(field):
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field)


def at_or_below(directory):
    """Returns the mountpoints at or below a directory. The mount that was made last comes first."""
    root = os.path.realpath(directory)
    inside = root.rstrip("/") + "/"
    return [where for _, where, _, _ in reversed(table()) if where == root or where.startswith(inside)]


def is_mountpoint(directory):
    return os.path.realpath(directory) in at_or_below(directory)


def unmount(directory, patience=10.0):
    """Ends every mount at or below a directory. If a mount is busy for `patience` seconds, detaches
    it (umount --lazy)."""
    deadline = time.monotonic() + patience
    while points := at_or_below(directory):
        late = time.monotonic() > deadline
        command = ["umount", "--lazy", points[0]] if late else ["umount", points[0]]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            if late:
                raise StillMounted(points[0])
            time.sleep(0.1)


def remove_tree(directory):
    """Removes a directory with its contents. Removes nothing and raises StillMounted if there is a
    mount at or below it."""
    if points := at_or_below(directory):
        raise StillMounted(points[0])
    subprocess.run(["rm", "-rf", "--one-file-system", "--", directory], check=True)


def kind_of(path):
    """Returns the type of the file system that contains a path."""
    path = os.path.realpath(path)
    best = ("", "")
    for _, where, kind, _ in table():
        if path == where or path.startswith(where.rstrip("/") + "/"):
            if len(where) >= len(best[0]):
                best = (where, kind)
    return best[1]
