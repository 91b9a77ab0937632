"""Parses the options of compare-bucket, runs its workloads, and writes the results."""
import argparse
import json
import os
import signal
import subprocess
import sys
import time
import traceback

from peers import backups, bucket_report, compare, corpus, machine, mounts, working_tree
from peers.bucket_systems import SYSTEMS
from peers.command_line import Interrupted, one_of, size
from peers.measure import CommandFailed, Step
from peers.surroundings import TOUCHED_BYTES, Surroundings

_WORKLOADS = ("backup", "ingest", "stream")
_STREAM_FILES = 20


def _say(words):
    print(f"compare-bucket: {words}", file=sys.stderr, flush=True)


def _parse(documentation, arguments):
    systems = [kind(None).key for kind in SYSTEMS]
    parser = argparse.ArgumentParser(prog="compare-bucket", description=documentation,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", metavar="CORPUS")
    parser.add_argument("--endpoint", default=os.environ.get("SILTFS_TEST_S3_FORWARD"), metavar="URL",
                        help="the service; by default the one that with_service.sh has started")
    parser.add_argument("--service", default="the service", metavar="NAME", help="its name in the tables")
    parser.add_argument("--bucket", default="bucket", help="the bucket (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workloads", type=one_of(_WORKLOADS), default=list(_WORKLOADS),
                        help=f"of {','.join(_WORKLOADS)}")
    parser.add_argument("--systems", type=one_of(systems), default=systems, help=f"of {','.join(systems)}")
    parser.add_argument("--generations", type=int, help="how many generations of the corpus to store, instead of all")
    parser.add_argument("--cache", type=size, default=size("4G"), help="the cache of siltfs in backup and ingest (4G)")
    parser.add_argument("--stream-size", type=size, default=size("20G"), help="(20G)")
    parser.add_argument("--stream-cache", type=size, default=size("2G"), help="the cache of siltfs in stream (2G)")
    parser.add_argument("--siltfs", default=os.path.join("build", "release", "bin"), metavar="BIN",
                        help="the directory with the program siltfs (%(default)s)")
    parser.add_argument("--mkfs-options", default="", help="further options of siltfs mkfs, as one word")
    parser.add_argument("--mount-options", default="", help="options of siltfs mount, with commas between")
    parser.add_argument("--touch-memory", type=size, default=TOUCHED_BYTES, metavar="SIZE",
                        help="how much free memory is touched before each step (3G)")
    parser.add_argument("--scratch", default=os.environ.get("TMPDIR", "/var/tmp"),
                        help="where caches are kept and data is restored (%(default)s)")
    parser.add_argument("--no-cgroups", action="store_true", help="measure without control groups")
    parser.add_argument("--patience", type=int, default=3600, metavar="SECONDS", help="limit for one command (%(default)s)")
    parser.add_argument("--out", default=os.path.join("docs", "benchmarks", "bucket"), metavar="PREFIX",
                        help="prefix of the result files (%(default)s)")
    parser.add_argument("--redraw", action="store_true", help="only write the tables from PREFIX.json")
    parser.add_argument("--verbose", action="store_true", help="print the stack of every failure")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or (options.generations or 1) < 1:
        parser.error("rounds and generations are at least 1")
    if not options.endpoint and not options.redraw:
        parser.error("--endpoint is needed")
    return options


class _Runs:
    """Adds the results of all passes to `record`, which becomes the JSON document."""

    def __init__(self, options, generations, surroundings, record):
        self.options = options
        self.generations = generations
        self.surroundings = surroundings
        self.record = record
        self.working_tree = working_tree.WorkingTree(surroundings.directory)

    def choose(self):
        self.usable = []
        for system in (kind(self.options) for kind in SYSTEMS):
            if system.key not in self.options.systems:
                continue
            reason = system.unusable()
            self.record["systems"][system.name] = {
                "role": system.role, "remark": system.remark, "version": None if reason else system.version(),
                "left_out": reason and self.surroundings.without_paths(reason), "failed": {}}
            if reason:
                _say(f"{system.name}: left out: {reason}")
            else:
                self.usable.append(type(system))

    def run(self):
        for number in range(self.options.rounds):
            for workload in self.options.workloads:
                if workload == "stream" and number > 0:
                    continue
                kinds = [kind for kind in self.usable if workload in kind.workloads]
                turn = number % max(1, len(kinds))
                for kind in kinds[turn:] + kinds[:turn]:
                    self._attempt(kind, workload, number)

    def _attempt(self, kind, workload, number):
        failed = self.record["systems"][kind.name]["failed"]
        if workload in failed:
            return
        _say(f"round {number + 1} of {self.options.rounds}, {workload}: {kind.name}")
        try:
            figures = self._pass(kind(self.options), workload)
        except (CommandFailed, compare.Differs, OSError, ValueError, subprocess.SubprocessError,
                mounts.StillMounted) as error:
            wrong = isinstance(error, compare.Differs)
            words = self.surroundings.without_paths(("wrong data came back: " if wrong else "") + str(error))
            _say(f"{kind.name}: {words}")
            if self.options.verbose:
                traceback.print_exc()
            failed[workload] = words
            self.record["wrong_data"] |= wrong
        else:
            self.record["runs"].append({"round": number, "workload": workload, "system": kind.name, **figures})

    def _pass(self, system, workload):
        directory = os.path.join(self.surroundings.directory, "pass")
        os.mkdir(directory)
        self.surroundings.system = system.name
        try:
            system.open(directory)
            return getattr(self, f"_{workload}")(system)
        finally:
            system.close()
            for left in (directory, os.path.join(self.surroundings.directory, "restored")):
                mounts.unmount(left)
                if os.path.lexists(left):
                    mounts.remove_tree(left)
            system.remove_objects()

    def _backup(self, system):
        kind = backups.Kind("tree", self.working_tree)
        with Step(self.surroundings) as step:
            system.create(step)
        stored = [backups.store(system, kind, generation, self.surroundings) for generation in self.generations]
        last = self.generations[-1]
        system.lose_machine()
        figures = {"generations": stored,
                   "restore": backups.restore(system, kind, last, self.surroundings, cold=True)}
        if system.recompresses:
            figures["settled"] = self._settle(system)
            system.lose_machine()
            figures["restore_settled"] = backups.restore(system, kind, last, self.surroundings, cold=True)
        return figures

    def _settle(self, system):
        with Step(self.surroundings) as step:
            system.recompress(step)
            figures = step.figures()
        return {**figures, "stored_bytes": system.stored_bytes()}

    def _ingest(self, system):
        generation = self.generations[0]
        with Step(self.surroundings) as step:
            system.create(step)
        self.surroundings.warm(generation.tree)
        self.surroundings.settle()
        self.surroundings.touch_memory()
        with Step(self.surroundings) as step:
            with system.mounted(step) as place:
                with step.timed("ingest"):
                    system.copy_tree(step, generation.tree, place)
                    step.run([system.program(), "sync", place])
                figures = step.figures()
        return {**figures, "bytes": generation.tree_bytes, "seconds": figures["parts"]["ingest"]}

    def _stream(self, system):
        """Each file is the key stream of a cipher, whose key is the number of the file. So it need not
        be kept to compare it."""
        self.options.cache, kept = self.options.stream_cache, self.options.cache
        count = self.options.stream_size // _STREAM_FILES
        generate = (f"openssl enc -aes-128-ctr -nosalt -pass pass:$1 -md sha256 -in /dev/zero 2>/dev/null | "
                    f"head -c {count}")
        try:
            with Step(self.surroundings) as step:
                system.create(step)
            self.surroundings.touch_memory()
            with Step(self.surroundings) as step:
                with system.mounted(step) as place:
                    with step.timed("write"):
                        for number in range(_STREAM_FILES):
                            step.run(["sh", "-c", f'{generate} >"$2/$1"', "sh", str(number), place])
                        step.run([system.program(), "sync", place])
                    written = step.figures()
            self.surroundings.drop_caches()
            self.surroundings.touch_memory()
            with Step(self.surroundings) as step:
                with system.mounted(step) as place:
                    with step.timed("read"):
                        for number in range(_STREAM_FILES):
                            try:
                                step.run(["sh", "-c", f'{generate} | cmp - "$2/$1"', "sh", str(number), place])
                            except CommandFailed as error:
                                raise compare.Differs(str(error)) from error
                    read = step.figures()
        finally:
            self.options.cache = kept
        return {"write": written, "read": read, "bytes": count * _STREAM_FILES, "verified": True}


def _measure(options):
    with Surroundings(options.scratch, not options.no_cgroups, None, options.patience,
                      options.touch_memory) as surroundings:
        surroundings.call("CORPUS", options.corpus)
        surroundings.call("BIN", options.siltfs)
        generations = corpus.read(options.corpus, options.generations)
        record = {
            "format": 1, "date": time.strftime("%Y-%m-%d"), "service": options.service,
            "machine": machine.describe(surroundings.directory),
            "options": {"rounds": options.rounds, "workloads": options.workloads, "cache_bytes": options.cache,
                        "stream_bytes": options.stream_size, "stream_cache_bytes": options.stream_cache,
                        "mkfs_options": options.mkfs_options, "mount_options": options.mount_options},
            "corpus": [{"name": generation.name, "tree_bytes": generation.tree_bytes, "files": generation.files}
                       for generation in generations],
            "systems": {}, "wrong_data": False, "runs": [],
        }
        runs = _Runs(options, generations, surroundings, record)
        runs.choose()
        runs.run()
        record["commands"] = surroundings.commands
        return json.loads(surroundings.without_paths(json.dumps(record).replace(options.endpoint, "ENDPOINT")))


def _on_signal(number, _):
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)  # Signals may not interrupt the cleanup.
    raise Interrupted(number)


def main(documentation, arguments):
    options = _parse(documentation, arguments)
    if os.geteuid() != 0 and not options.redraw:
        _say("needs root: for mounts, and to drop caches")
        return 1
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _on_signal)
    try:
        if options.redraw:
            with open(options.out + ".json", encoding="utf-8") as file:
                record = json.load(file)
        else:
            record = _measure(options)
    except Interrupted as error:
        return 128 + error.args[0]
    except (corpus.NoCorpus, OSError) as error:
        _say(str(error))
        return 1
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    for suffix, content in ((".json", json.dumps(record, indent=1, ensure_ascii=False) + "\n"),
                            (".md", bucket_report.markdown(record))):
        with open(options.out + suffix, "w", encoding="utf-8") as file:
            file.write(content)
    return int(record["wrong_data"] or any(system["failed"] for system in record["systems"].values()))
