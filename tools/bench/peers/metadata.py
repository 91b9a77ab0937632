"""The workload metadata: many small files are unpacked, listed with their attributes, and removed.
Rates are in files a second.

Each step has its own mount, so the kernel's caches of the measured file system are empty. The file
system below it has filled caches, in the same way for all systems. The time of a step includes the
unmount if files were changed. It does not include the mount.
"""
import os

from peers import corpus
from peers.measure import CommandFailed, Step

STEPS = ("untar", "find", "rm")
_COUNTED = {"untar": ("work", "unmount"), "find": ("work",), "rm": ("work", "unmount")}
_FORMAT = "%s %T@ %m %u %n %p\\n"


class SmallFiles:
    """The tree that is unpacked, as a tar in the scratch directory."""

    def __init__(self, tree, name, scratch):
        self.name = name
        self.bytes, self.files = corpus.measure_tree(tree)
        self.tar = os.path.join(scratch, "small-files.tar")
        corpus.make_tar(tree, self.tar)
        self.top = os.path.basename(os.path.normpath(tree))


def run(system, small_files, surroundings):
    with Step(surroundings) as step:
        system.create(step)
    surroundings.warm(small_files.tar)
    return {name: _measure(name, system, small_files, surroundings) for name in STEPS}


def _measure(name, system, small_files, surroundings):
    surroundings.settle()
    surroundings.touch_memory()
    listing = os.path.join(surroundings.directory, "listing")
    with Step(surroundings, system.memory_limit) as step:
        with system.mounted(step) as place:
            top = os.path.join(place, small_files.top)
            with step.timed("work"):
                if name == "untar":
                    step.run(["tar", "-C", place, "-xf", small_files.tar])
                elif name == "find":
                    step.run(["find", top, "-type", "f", "-printf", _FORMAT], stdout=listing)
                else:
                    step.run(["rm", "-r", top])
            if name == "rm" and os.listdir(place):
                raise CommandFailed(f"{system.name}: rm left something behind")
        figures = step.figures()
    if name == "find":
        _check(listing, small_files, system)
    seconds = sum(figures["parts"][part] for part in _COUNTED[name])
    return {**figures, "counted_seconds": seconds, "files": small_files.files,
            "files_per_s": small_files.files / seconds}


def _check(listing, small_files, system):
    with open(listing, encoding="utf-8", errors="surrogateescape") as file:
        sizes = [int(line.split(" ", 1)[0]) for line in file]
    if (len(sizes), sum(sizes)) != (small_files.files, small_files.bytes):
        raise CommandFailed(f"{system.name}: find sees {len(sizes)} files of {sum(sizes)} bytes, not "
                            f"{small_files.files} of {small_files.bytes}")
