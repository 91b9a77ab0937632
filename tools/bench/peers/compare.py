"""Compares restored data with its source, byte for byte."""
import os
import stat
import subprocess

_BLOCK = 1 << 20


class Differs(Exception):
    """A restored file or tree differs from its source."""


def files(source, restored):
    """Raises Differs unless both files hold the same bytes."""
    with open(source, "rb", buffering=0) as left, open(restored, "rb", buffering=0) as right:
        position = 0
        while True:
            wanted, got = _block(left), _block(right)
            if wanted != got:
                same = next((i for i, (a, b) in enumerate(zip(wanted, got)) if a != b),
                            min(len(wanted), len(got)))
                raise Differs(f"{restored} differs from {source} at byte {position + same}")
            if not wanted:
                return
            position += len(wanted)


def _block(file):
    """Reads a whole block, or less at the end of the file. A single read may return less than a
    block."""
    parts, missing = [], _BLOCK
    while missing and (part := file.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def trees(source, restored):
    """Raises Differs unless both trees have the same names, types, permission bits, link targets
    and bytes."""
    wanted, got = sorted(os.listdir(source)), sorted(os.listdir(restored))
    if wanted != got:
        odd = sorted(set(wanted) ^ set(got))[0]
        raise Differs(f"{restored} and {source} do not both have {odd}")
    for name in wanted:
        _entries(os.path.join(source, name), os.path.join(restored, name))


def _entries(source, restored):
    wanted, got = os.lstat(source).st_mode, os.lstat(restored).st_mode
    if stat.S_ISLNK(wanted) and stat.S_ISLNK(got):
        if os.readlink(source) != os.readlink(restored):
            raise Differs(f"{restored} links to {os.readlink(restored)}, {source} to {os.readlink(source)}")
        return
    if wanted != got:
        raise Differs(f"{restored} has mode {got:o}, {source} {wanted:o}")
    if stat.S_ISDIR(wanted):
        trees(source, restored)
    elif stat.S_ISREG(wanted):
        files(source, restored)


_WINDOWS = {"seconds": ["--modify-window=0"], "nanoseconds": ["--modify-window=-1"], None: ["--no-times"]}


def metadata(source, restored, times):
    """Raises Differs if rsync would change anything in the restored tree: owners, permission bits,
    access control lists, extended attributes, missing hard links, device nodes, contents. `times`
    is the unit of the times that are compared, or None."""
    command = ["rsync", "-aHAXc", "--delete", "--dry-run", "-i", *_WINDOWS[times], f"{source}/", f"{restored}/"]
    done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape", check=True)
    if done.stdout:
        raise Differs(f"{restored} has other metadata than {source}: {done.stdout.splitlines()[0]}")
