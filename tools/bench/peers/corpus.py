"""The generations of a corpus: trees gen0, gen1, … and each of them as a tar."""
import os
import subprocess
from dataclasses import dataclass

_TAR = ["tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@1700000000"]


class NoCorpus(Exception):
    """The directory holds no generations."""


@dataclass
class Generation:
    name: str
    tree: str
    tree_bytes: int
    files: int
    tar: str = None
    tar_bytes: int = 0


def read(directory, most):
    """Returns the first `most` generations, or all generations if `most` is None."""
    found = []
    while os.path.isdir(tree := os.path.join(directory, f"gen{len(found)}")) and len(found) != most:
        found.append(Generation(f"gen{len(found)}", tree, *measure_tree(tree)))
    if len(found) < (most or 1):
        raise NoCorpus(f"{directory}: {len(found)} generations (gen0, gen1, …) are here, {most or 1} are wanted")
    return found


def measure_tree(tree):
    """Returns the sum of the lengths of all regular files, and their number."""
    sizes = []
    for parent, _, names in os.walk(tree):
        states = (os.lstat(os.path.join(parent, name)) for name in names)
        sizes.extend(state.st_size for state in states if state.st_mode & 0o170000 == 0o100000)
    return sum(sizes), len(sizes)


def add_tars(generations, directory, scratch):
    """Finds the tars of the corpus, and makes missing ones. A tar that it makes is the same on
    every machine."""
    for generation in generations:
        generation.tar = os.path.join(directory, "tar", f"{generation.name}.tar")
        if not os.path.isfile(generation.tar):
            generation.tar = os.path.join(scratch, f"{generation.name}.tar")
            make_tar(generation.tree, generation.tar)
        generation.tar_bytes = os.path.getsize(generation.tar)


def make_tar(tree, tar):
    parent, name = os.path.split(os.path.normpath(tree))
    subprocess.run([*_TAR, "-C", parent, "-cf", tar, name], check=True)
