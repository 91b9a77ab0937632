"""Parses the options of compare-peers, runs the measurements, and writes the results."""
import argparse
import json
import os
import signal
import sys
import tempfile
import time

from peers import cgroups, corpus, fio, machine, metadata, mounts, plots, report, summary, working_tree
from peers.rounds import SYSTEMS, WORKLOADS, Rounds, say
from peers.surroundings import TOUCHED_BYTES, Surroundings

_DEFAULT_OUT = os.path.join("docs", "benchmarks", "peers")


class Interrupted(BaseException):
    """Raised when a signal asks the program to end, so that every context manager cleans up."""


def size(words):
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}.get(words[-1:].upper())
    return int(words[:-1]) * factor if factor else int(words)


def one_of(known):
    """Returns the type of an option: names of `known`, with commas between."""
    def choice(words):
        names = words.split(",")
        if unknown := set(names) - set(known):
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not among {', '.join(known)}")
        return [name for name in known if name in names]
    return choice


def _parse(documentation, arguments):
    systems = list(dict.fromkeys(kind(None).key for kind in SYSTEMS))
    parser = argparse.ArgumentParser(prog="compare-peers", description=documentation,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", metavar="CORPUS")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--systems", type=one_of(systems), default=systems, help=f"of {','.join(systems)}")
    parser.add_argument("--workloads", type=one_of(WORKLOADS), default=list(WORKLOADS),
                        help=f"of {','.join(WORKLOADS)}")
    parser.add_argument("--generations", type=int, help="how many generations of the corpus to store, instead of all")
    parser.add_argument("--siltfs", default=os.path.join("build", "release", "bin"), metavar="BIN",
                        help="the directory with the program siltfs (%(default)s)")
    parser.add_argument("--mkfs-options", default="", help="further options of siltfs mkfs, as one word")
    parser.add_argument("--mount-options", default="", help="options of siltfs mount, with commas between")
    parser.add_argument("--memory-limit", type=size,
                        help="measure siltfs a second time, with this memory limit for its daemon, such as 192M")
    parser.add_argument("--touch-memory", type=size, default=TOUCHED_BYTES, metavar="SIZE",
                        help="how much free memory is touched before each step (3G)")
    parser.add_argument("--scratch", default=os.environ.get("TMPDIR", "/var/tmp"),
                        help="where stores are made and data restored (%(default)s)")
    parser.add_argument("--passthrough-hp", metavar="PROGRAM", help="path of libfuse's example")
    parser.add_argument("--passthrough-ll", metavar="PROGRAM", help="path of libfuse's example")
    parser.add_argument("--small-files", metavar="TREE",
                        help="what metadata unpacks: a tree of the corpus (gen0/linux if there is one, else gen0)")
    parser.add_argument("--fio-size", type=size, default=size("512M"), help="size of fio's files (512M)")
    parser.add_argument("--fio-random-size", type=size, default=size("128M"), help="bytes moved at random (128M)")
    parser.add_argument("--no-cgroups", action="store_true", help="measure without control groups")
    parser.add_argument("--patience", type=int, default=3600, metavar="SECONDS", help="limit for one command (%(default)s)")
    parser.add_argument("--out", default=_DEFAULT_OUT, metavar="PREFIX", help="prefix of the result files (%(default)s)")
    parser.add_argument("--redraw", action="store_true", help="only write tables and plots from PREFIX.json")
    parser.add_argument("--verbose", action="store_true", help="print the stack of every failure")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or (options.generations or 1) < 1:
        parser.error("rounds and generations are at least 1")
    options.corpus = os.path.abspath(options.corpus)
    return options


def _small_files_name(options):
    if options.small_files:
        return options.small_files
    return "gen0/linux" if os.path.isdir(os.path.join(options.corpus, "gen0", "linux")) else "gen0"


def _empty_record(options, surroundings, generations, small_files):
    return {
        "format": 2,
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine.describe(surroundings.directory),
        "options": {"rounds": options.rounds, "workloads": options.workloads,
                    "memory_limit_bytes": options.memory_limit, "mkfs_options": options.mkfs_options,
                    "mount_options": options.mount_options, "fio_bytes": options.fio_size,
                    "fio_random_bytes": options.fio_random_size, "measured_by": surroundings.groups.how},
        "corpus": {"generations": [{"name": generation.name, "tar_bytes": generation.tar_bytes,
                                    "tree_bytes": generation.tree_bytes, "files": generation.files}
                                   for generation in generations],
                   "small_files": small_files and {"name": small_files.name, "files": small_files.files,
                                                   "bytes": small_files.bytes}},
        "systems": {}, "notes": [], "wrong_data": False, "runs": [],
    }


def _measure(options):
    with Surroundings(options.scratch, not options.no_cgroups, options.memory_limit, options.patience,
                      options.touch_memory) as surroundings:
        surroundings.call("CORPUS", options.corpus)
        surroundings.call("BIN", options.siltfs)
        for program in filter(None, (options.passthrough_hp, options.passthrough_ll)):
            surroundings.call(os.path.basename(program), program)
        generations = corpus.read(options.corpus, options.generations)
        if "tar" in options.workloads:
            corpus.add_tars(generations, options.corpus, surroundings.directory)
        small_files = None
        if "metadata" in options.workloads:
            name = _small_files_name(options)
            small_files = metadata.SmallFiles(os.path.join(options.corpus, name), name, surroundings.directory)
        record = _empty_record(options, surroundings, generations, small_files)
        for workload, reason in (("fio", fio.unusable()), ("tree", working_tree.unusable())):
            if reason and workload in options.workloads:
                options.workloads.remove(workload)
                record["notes"].append(f"no workload {workload}: {reason}")
        rounds = Rounds(options, generations, small_files, surroundings, record)
        rounds.choose()
        rounds.run()
        if surroundings.groups_note:
            record["notes"].append(f"CPU seconds are those of rusage and of samples, not of control groups: "
                                   f"{surroundings.groups_note}")
        if surroundings.caches_note:
            record["notes"].append(surroundings.caches_note)
        record["commands"] = surroundings.commands
        return json.loads(surroundings.without_paths(json.dumps(record)))


def _write(out, record):
    record["summary"] = summary.summarise(record)
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    files = {".json": json.dumps(record, indent=1, ensure_ascii=False) + "\n", ".md": report.markdown(record)}
    files.update({f"-{name}.svg": drawing for name, drawing in plots.draw(record).items()})
    for suffix, content in files.items():
        with open(out + suffix, "w", encoding="utf-8") as file:
            file.write(content)


def _on_signal(number, _):
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)  # Signals may not interrupt the cleanup.
    raise Interrupted(number)


def main(documentation, arguments):
    options = _parse(documentation, arguments)
    if os.geteuid() != 0 and not options.redraw:
        say("needs root: for mounts, control groups, and to drop caches")
        return 1
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _on_signal)
    try:
        if options.redraw:
            with open(options.out + ".json", encoding="utf-8") as file:
                record = json.load(file)
        else:
            record = _measure(options)
        _write(options.out, record)
    except Interrupted:
        say("interrupted; nothing was written")
        return 130
    except (corpus.NoCorpus, cgroups.Unavailable, mounts.StillMounted, OSError) as error:
        say(str(error))
        return 1
    print(report.markdown(record))
    return 1 if record["wrong_data"] or _siltfs_failed(record["systems"]) else 0


def _siltfs_failed(systems):
    """Returns whether siltfs was left out, or failed in any way of using it."""
    return any(system["failed"] or (system["role"] == "siltfs" and system["left_out"])
               for system in systems.values() if system["role"] in ("siltfs", "variant"))
