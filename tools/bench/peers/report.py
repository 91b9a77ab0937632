"""The tables, as Markdown."""
from peers import machine
from peers.summary import DAEMON_BYTES_TARGET, MB, TARGETS, daemon_peak

_HOW = """The time of a file system covers mount, copy and unmount (`dd` of a tar in blocks of 1 MiB, `tar | tar` of a tree); that
of a backup tool covers its one command. Sources are in the page cache; stores and restored data are on the scratch disk.
After each step the disk is synced, outside the time. Before a restore all caches are dropped, except for the program
itself. Before each step free memory is touched, so that no step pays for memory that a virtual machine has returned to
its host. Every restore is compared with its source; the first round restores every generation. CPU seconds and peak
memory (sum of the resident sizes, sampled 20 times a second) are those of all processes of a step: daemons and copying
programs are included, kernel threads are not. Figures are medians of the rounds, with the range of all measurements;
ratios are of medians, with the range of the rounds' pairs."""

# Only for records since format 2: earlier trees were stored from the corpus.
_HOW_SINCE_2 = """\
All systems store a tree from the same directory. Before each generation, outside the time, the files
that differ are changed there, and the other files keep their inode numbers and times. A name such as
`siltfs cp -a io_uring` says which program copies a tree if this is not `tar`, and how requests reach
the daemon. Trees that come back from siltfs are also compared in their metadata. CPU seconds of a
daemon include those of the mount."""


def _rate(figure):
    """Returns the text of a rate, with its range if the measurements differ."""
    digits = 0 if figure["median"] >= 100 else 1
    median, least, most = (f"{figure[key]:,.{digits}f}" for key in ("median", "least", "most"))
    return median if least == most else f"{median} ({least}–{most})"


def _table(head, rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _without_figures(record, workload):
    """Returns a line for each system that is missing in a workload's table, with the reason."""
    lines = []
    for name, system in record["systems"].items():
        reason = system["failed"].get(workload) or system["left_out"]
        if reason and workload in system["workloads"]:
            verb = "failed" if workload in system["failed"] else "left out"
            lines.append(f"- {name}: {verb}: {reason.rstrip('.')}.")
    return lines


def _backup_rows(summary):
    for name, figures in summary["systems"].items():
        cpu = f"{figures['cpu_first']['median']:.1f}"
        if "cpu_next" in figures:
            cpu += f" / {figures['cpu_next']['median']:.1f}"
        yield [name, _rate(figures["first"]), _rate(figures["next"]) if "next" in figures else "–",
               _rate({key: figures["stored_bytes"][key] / MB for key in ("median", "least", "most")}),
               f"{figures['ratio']['median']:.2f}", _rate(figures["restore"]), cpu, f"{figures['cpu_restore']['median']:.1f}",
               f"{figures['peak_rss_bytes'] / MB:.0f}"]


def _backups(record, workload, summary):
    generations = record["corpus"]["generations"]
    total = sum(generation[f"{workload}_bytes"] for generation in generations)
    more = len(generations) - 1
    files = f" of {generations[0]['files']:,} files" if workload == "tree" else ""
    yield (f"## {'One tar stream' if workload == 'tar' else 'One tree' + files} a generation\n")
    yield _table(["system", "first backup MB/s", f"next {more}, MB/s", f"stored MB, of {total / MB:,.0f}", "ratio",
                  "cold restore MB/s", f"CPU s, first / next {more}", "CPU s, restore", "peak RSS MB"],
                 _backup_rows(summary))
    yield ""
    yield from _settled(summary)
    yield from _all_against(summary, lambda key: TARGETS[key][0], "best deduplicating peer")
    yield from _transports(summary)


def _settled(summary):
    rows = [[name, f"{found['stored_bytes']['median'] / MB:.1f}", f"{found['ratio']['median']:.2f}",
             _rate(found["restore"]), f"{found['cpu']['median']:.1f}"]
            for name, figures in summary["systems"].items() if (found := figures.get("settled"))]
    if rows:
        yield _table(["settled afterwards", "stored MB", "ratio", "cold restore MB/s", "CPU s of settling"], rows)
        yield ""


def _all_against(summary, name_of, title):
    yield from _against(summary["against"], name_of, "siltfs against the " + title, "best")
    yield from _against(summary["limited"], name_of, "siltfs, memory limited, against siltfs", "against")


def _against(against, name_of, title, best):
    if against:
        yield _table([title, best, "ratio (range)", "target", "met"],
                     [[name_of(key), found["best"],
                       _ratio(found),
                       "–" if found["target"] is None else f"≥ {found['target']:g} ×",
                       {None: "–", True: "yes", False: "**no**"}[found["met"]]] for key, found in against.items()])
        yield ""


def _transports(summary):
    """Yields the ratios of io_uring to /dev/fuse, with a column for each system that has both."""
    pairs = summary.get("transports")
    if pairs:
        keys = list(dict.fromkeys(key for pair in pairs.values() for key in pair["ratios"]))
        yield _table(["io_uring against /dev/fuse", *(name.removesuffix(" io_uring") for name in pairs)],
                     [[key, *(_ratio(pair["ratios"].get(key)) for pair in pairs.values())] for key in keys])
        yield ""


def _ratio(found):
    return f"{found['ratio']:.2f} × ({found['least']:.2f}–{found['most']:.2f})" if found else "–"


def _small_files(summary):
    systems = summary["systems"]
    steps = list(next(iter(systems.values())))
    daemon_cpu = summary.get("daemon_cpu", {})
    yield _table(["system", *(f"{step}, files/s" for step in steps), f"CPU s of the daemon, {' / '.join(steps)}"],
                 [[name, *(_rate(figures[step]) for step in steps),
                   " / ".join(f"{daemon_cpu[name][step]['median']:.2f}" for step in steps) if name in daemon_cpu else "–"]
                  for name, figures in systems.items()])
    yield ""
    yield from _all_against(summary, str, "faster passthrough")
    yield from _transports(summary)


def _rates(summary):
    systems = summary["systems"]
    steps = list(next(iter(systems.values())))
    scaled = {name: {step: {key: value / MB for key, value in figure.items() if key != "rounds"}
                     for step, figure in figures.items()} for name, figures in systems.items()}
    yield _table(["MB/s", *scaled],
                 [[step, *(_rate(scaled[name][step]) for name in scaled)] for step in steps])
    yield ""
    yield from _all_against(summary, str, "faster passthrough")


def _head(record):
    yield "# siltfs and its peers\n"
    yield f"{machine.in_words(record['machine'])}. Rounds: {record['options']['rounds']}.\n"
    yield _HOW + "\n"
    if record["format"] >= 2:
        yield _HOW_SINCE_2 + "\n"
    if limit := record["options"]["memory_limit_bytes"]:
        yield f"The memory limit of siltfs's daemon, where it has one: {limit / (1 << 20):.0f} MiB.\n"
    if peak := daemon_peak(record):
        yield (f"siltfs's daemon at its peak in any step, resident: {peak / (1 << 20):.0f} MiB (target: at most "
               f"{DAEMON_BYTES_TARGET >> 20} MiB{'' if peak <= DAEMON_BYTES_TARGET else ', **not met**'}).\n")
    if record["wrong_data"]:
        yield "**Wrong data came back: this run has failed.**\n"
    for note in record["notes"]:
        yield f"Note: {note}.\n"


def markdown(record):
    lines = list(_head(record))
    summary = record["summary"]
    for workload in record["options"]["workloads"]:
        if workload in ("metadata", "fio"):
            lines += _title(record, workload)
            if workload in summary:
                lines += (_small_files if workload == "metadata" else _rates)(summary[workload])
        elif workload in summary:
            lines += _backups(record, workload, summary[workload])
        else:
            lines += [f"## {workload}\n"]
        if missing := _without_figures(record, workload):
            lines += ["Not in this table:\n", *missing, ""]
    lines += ["## Systems\n", *_systems(record)]
    return "\n".join(lines).rstrip() + "\n"


def _title(record, workload):
    if workload == "metadata":
        small = record["corpus"]["small_files"]
        return [f"## Small files: {small['files']:,} files of {small['name']}, {small['bytes'] / MB:,.0f} MB\n",
                "Each step on a mount of its own; the unmount counts except for find, the mount does not.\n"]
    options = record["options"]
    return [f"## fio through the mount, {options['fio_bytes'] / MB:,.0f} MB in order, "
            f"{options['fio_random_bytes'] / MB:,.0f} MB at random\n",
            "Buffered, one job, half of the data compressible, none repeated; a write ends with fsync and the "
            "unmount counts, before a read all caches are dropped.\n"]


def _systems(record):
    for name, system in record["systems"].items():
        if not system["left_out"]:
            yield f"- {name}: version {system['version']}" + (f"; {system['remark']}" if system["remark"] else "")
