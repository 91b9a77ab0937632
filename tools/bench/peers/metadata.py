"""The workload metadata: many small files are unpacked, copied, listed with their attributes, and
removed. Rates are in files a second.

Each step has its own mount, so the kernel's caches of the measured file system are empty. The file
system below it has filled caches, in the same way for all systems. The time of a step includes the
unmount if files were changed. It does not include the mount. The step cp has a store of its own,
because a store that deduplicates would know the data already.
"""
import os

from peers import corpus
from peers.measure import CommandFailed, Step

STEPS = ("untar", "cp", "find", "rm")
_STORES = (("untar", "find", "rm"), ("cp",))  # the steps of each store
_COUNTED = {"find": ("work",)}
_SOURCES = {"untar": "tar", "cp": "tree"}  # what is read into the page cache before a step
_FORMAT = "%s %T@ %m %u %n %p\\n"


class SmallFiles:
    """The tree that is copied, and its tar in the scratch directory."""

    def __init__(self, tree, name, scratch):
        self.name = name
        self.tree = os.path.normpath(tree)
        self.bytes, self.files = corpus.measure_tree(tree)
        self.tar = os.path.join(scratch, "small-files.tar")
        corpus.make_tar(tree, self.tar)
        self.top = os.path.basename(self.tree)


def run(system, small_files, surroundings):
    found = {}
    for steps in _STORES:
        with Step(surroundings) as step:
            system.create(step)
        for name in steps:
            found[name] = _measure(name, system, small_files, surroundings)
        if "cp" in steps:
            _check_copy(system, small_files, surroundings)
        system.discard()
    return {name: found[name] for name in STEPS}


def _measure(name, system, small_files, surroundings):
    if name in _SOURCES:
        surroundings.warm(getattr(small_files, _SOURCES[name]))
    surroundings.settle()
    surroundings.touch_memory()
    listing = os.path.join(surroundings.directory, "listing")
    with Step(surroundings, system.memory_limit) as step:
        with system.mounted(step) as place:
            top = os.path.join(place, small_files.top)
            with step.timed("work"):
                if name == "untar":
                    step.run(["tar", "-C", place, "-xf", small_files.tar])
                elif name == "cp":
                    step.run(["cp", "-a", small_files.tree, f"{place}/"])
                elif name == "find":
                    step.run(["find", top, "-type", "f", "-printf", _FORMAT], stdout=listing)
                else:
                    step.run(["rm", "-r", top])
            if name == "rm" and os.listdir(place):
                raise CommandFailed(f"{system.name}: rm left something behind")
        figures = step.figures()
    if name == "find":
        _check(listing, small_files, system)
    seconds = sum(figures["parts"][part] for part in _COUNTED.get(name, ("work", "unmount")))
    return {**figures, "counted_seconds": seconds, "files": small_files.files,
            "files_per_s": small_files.files / seconds}


def _check(listing, small_files, system):
    with open(listing, encoding="utf-8", errors="surrogateescape") as file:
        sizes = [int(line.split(" ", 1)[0]) for line in file]
    _compare("find", len(sizes), sum(sizes), small_files, system)


def _check_copy(system, small_files, surroundings):
    """Looks at what cp has made, on a mount that is not measured."""
    with Step(surroundings, system.memory_limit) as step, system.mounted(step) as place:
        total, files = corpus.measure_tree(os.path.join(place, small_files.top))
    _compare("cp", files, total, small_files, system)


def _compare(what, files, total, small_files, system):
    if (files, total) != (small_files.files, small_files.bytes):
        raise CommandFailed(f"{system.name}: after {what} there are {files} files of {total} bytes, not "
                            f"{small_files.files} of {small_files.bytes}")
