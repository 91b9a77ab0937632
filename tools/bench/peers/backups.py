"""The workloads tar and tree: generations stored one after the other, the last one restored from a
cold cache. Trees are stored from the working tree."""
import operator
import os

from peers import compare, mounts
from peers.measure import Step


class Kind:
    """Whether the tar or the tree of a generation is stored, and how the restored data is
    compared."""

    def __init__(self, workload, working_tree):
        self.bytes_of = operator.attrgetter(f"{workload}_bytes")
        self.workload = workload
        self.working_tree = working_tree

    def prepare(self, generation):
        """Returns the path from which the generation is stored."""
        if self.workload == "tar":
            return generation.tar
        self.working_tree.bring_to(generation)
        return self.working_tree.directory

    def store(self, system, step, source, generation):
        method = system.store_tar if self.workload == "tar" else system.store_tree
        method(step, source, generation.name)

    def restore(self, system, step, generation, place):
        method = system.restore_tar if self.workload == "tar" else system.restore_tree
        method(step, generation.name, place)

    def compare(self, system, generation, place):
        """Compares times only while the working tree has this generation, because the trees of the
        corpus have other times."""
        if self.workload == "tar":
            compare.files(generation.tar, place)
            return
        compare.trees(generation.tree, place)
        if system.metadata and self.working_tree.generation is generation:
            compare.metadata(self.working_tree.directory, place, system.metadata)
        elif system.metadata:
            compare.metadata(generation.tree, place, None)


def run(system, workload, generations, working_tree, surroundings, verify_all):
    """Runs one pass of one system. Raises compare.Differs if restored data differs from its
    source."""
    kind = Kind(workload, working_tree)
    with Step(surroundings) as step:
        system.create(step)
    stored = [store(system, kind, generation, surroundings) for generation in generations]
    restored = restore(system, kind, generations[-1], surroundings, cold=True)
    for generation in generations[:-1] if verify_all else []:
        restore(system, kind, generation, surroundings, cold=False)
    figures = {"generations": stored, "restore": restored}
    if system.recompresses:
        figures["settled"] = _recompress(system, surroundings)
        figures["restore_settled"] = restore(system, kind, generations[-1], surroundings, cold=True)
    return figures


def _recompress(system, surroundings):
    with Step(surroundings, system.memory_limit) as step:
        system.recompress(step)
        figures = step.figures()
    surroundings.settle()
    return {**figures, "stored_bytes": system.stored_bytes()}


def store(system, kind, generation, surroundings):
    source = kind.prepare(generation)
    surroundings.warm(source)
    surroundings.settle()
    surroundings.touch_memory()
    with Step(surroundings, system.memory_limit) as step:
        kind.store(system, step, source, generation)
        figures = step.figures()
    figures.update(generation=generation.name, bytes=kind.bytes_of(generation), sync_seconds=surroundings.settle(),
                   stored_bytes=system.stored_bytes())
    if details := system.details():
        figures["details"] = details
    return figures


def restore(system, kind, generation, surroundings, cold):
    place = os.path.join(surroundings.directory, "restored")
    if cold:
        surroundings.drop_caches()
        system.warm_up()
    surroundings.touch_memory()
    with Step(surroundings, system.memory_limit) as step:
        kind.restore(system, step, generation, place)
        figures = step.figures()
    kind.compare(system, generation, place)
    mounts.remove_tree(place)
    return {"generation": generation.name, "bytes": kind.bytes_of(generation), "verified": True, **figures}
