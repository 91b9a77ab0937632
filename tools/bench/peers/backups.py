"""The workloads tar and tree: generations stored one after the other, the last one restored from a
cold cache."""
import operator
import os

from peers import compare, mounts
from peers.measure import Step


class _Kind:
    """Whether the tar or the tree of a generation is stored, and how the restored data is
    compared."""

    def __init__(self, workload):
        self.source_of = operator.attrgetter(workload)
        self.bytes_of = operator.attrgetter(f"{workload}_bytes")
        self.compare = {"tar": compare.files, "tree": compare.trees}[workload]
        self.workload = workload

    def store(self, system, step, generation):
        method = system.store_tar if self.workload == "tar" else system.store_tree
        method(step, self.source_of(generation), generation.name)

    def restore(self, system, step, generation, place):
        method = system.restore_tar if self.workload == "tar" else system.restore_tree
        method(step, generation.name, place)


def run(system, workload, generations, surroundings, verify_all):
    """Runs one pass of one system. Raises compare.Differs if restored data differs from its
    source."""
    kind = _Kind(workload)
    with Step(surroundings) as step:
        system.create(step)
    stored = [_store(system, kind, generation, surroundings) for generation in generations]
    restored = _restore(system, kind, generations[-1], surroundings, cold=True)
    for generation in generations[:-1] if verify_all else []:
        _restore(system, kind, generation, surroundings, cold=False)
    figures = {"generations": stored, "restore": restored}
    if system.recompresses:
        figures["settled"] = _recompress(system, surroundings)
        figures["restore_settled"] = _restore(system, kind, generations[-1], surroundings, cold=True)
    return figures


def _recompress(system, surroundings):
    with Step(surroundings, system.memory_limit) as step:
        system.recompress(step)
        figures = step.figures()
    surroundings.settle()
    return {**figures, "stored_bytes": system.stored_bytes()}


def _store(system, kind, generation, surroundings):
    surroundings.warm(kind.source_of(generation))
    surroundings.settle()
    surroundings.touch_memory()
    with Step(surroundings, system.memory_limit) as step:
        kind.store(system, step, generation)
        figures = step.figures()
    figures.update(generation=generation.name, bytes=kind.bytes_of(generation), sync_seconds=surroundings.settle(),
                   stored_bytes=system.stored_bytes())
    if details := system.details():
        figures["details"] = details
    return figures


def _restore(system, kind, generation, surroundings, cold):
    place = os.path.join(surroundings.directory, "restored")
    if cold:
        surroundings.drop_caches()
        system.warm_up()
    surroundings.touch_memory()
    with Step(surroundings, system.memory_limit) as step:
        kind.restore(system, step, generation, place)
        figures = step.figures()
    kind.compare(kind.source_of(generation), place)
    mounts.remove_tree(place)
    return {"generation": generation.name, "bytes": kind.bytes_of(generation), "verified": True, **figures}
