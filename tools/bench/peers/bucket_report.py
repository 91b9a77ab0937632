"""The tables of compare-bucket: medians of the rounds, and the ratios to restic's with their targets."""
from statistics import median

from peers import machine

_MB = 1e6
_PEER = "restic"
_RSS_TARGET = 160 << 20


def _runs(record, workload):
    found = {}
    for run in record["runs"]:
        if run["workload"] == workload:
            found.setdefault(run["system"], []).append(run)
    return found


def _rate(steps):
    return sum(step["bytes"] for step in steps) / sum(step["seconds"] for step in steps) / _MB


def _daemon_peak(steps):
    return max(step["peak_rss_bytes_by_process"].get("siltfs", 0) for step in steps)


def backup_figures(runs):
    """Returns the medians of a system: rates in MB/s, and bytes in the bucket."""
    found = {
        "first backup": median(_rate(run["generations"][:1]) for run in runs),
        "cold restore": median(_rate([run["restore"]]) for run in runs),
        "bytes in the bucket": median(run["generations"][-1]["stored_bytes"] for run in runs),
    }
    if len(runs[0]["generations"]) > 1:
        found["next backups"] = median(_rate(run["generations"][1:]) for run in runs)
    if "settled" in runs[0]:
        found["bytes when recompressed"] = median(run["settled"]["stored_bytes"] for run in runs)
        found["cold restore when recompressed"] = median(_rate([run["restore_settled"]]) for run in runs)
    return found


def _verdict(ratio, target):
    met = ratio >= target if target >= 1 else ratio <= target
    return f"{ratio:.2f} (target {'≥' if target >= 1 else '≤'} {target}{'' if met else ', **not met**'})"


def _backup(record):
    figures = {name: backup_figures(runs) for name, runs in _runs(record, "backup").items()}
    total = sum(generation["tree_bytes"] for generation in record["corpus"])
    yield f"## Backups: {len(record['corpus'])} trees, {total / _MB:,.0f} MB\n"
    names = list(figures)
    yield f"| | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    rows = (("first backup", 1.5, None), ("next backups", 1.5, None), ("cold restore", 1.5, None),
            ("cold restore when recompressed", 1.5, "cold restore"), ("bytes in the bucket", 0.8, None),
            ("bytes when recompressed", 0.8, "bytes in the bucket"))
    for row, _, _ in rows:
        cells = []
        for name in names:
            value = figures[name].get(row)
            of_bytes = row.startswith("bytes")
            cells.append("" if value is None else f"{value / _MB:,.0f} MB" if of_bytes else f"{value:,.1f} MB/s")
        if any(cells):
            yield f"| {row} | {' | '.join(cells)} |"
    yield ""
    for name in names:
        for row, target, other in rows:
            peer = figures.get(_PEER, {}).get(other or row)
            if name != _PEER and peer and row in figures[name]:
                yield f"- {name}, {row}: {_verdict(figures[name][row] / peer, target)} × {_PEER}'s"
    for name, runs in _runs(record, "backup").items():
        if name != _PEER:
            peak = _daemon_peak([step for run in runs for step in [*run["generations"], run["restore"]]])
            yield f"- {name}, resident memory of the daemon at its peak: {peak / (1 << 20):.0f} MiB"
    yield ""


def _ingest(record):
    runs = _runs(record, "ingest")
    yield f"## Ingest while the cache has room: {record['corpus'][0]['tree_bytes'] / _MB:,.0f} MB\n"
    rates = {name: median(_rate([run]) for run in found) for name, found in runs.items()}
    for name, rate in rates.items():
        yield f"- {name}: {rate:,.0f} MB/s"
    pairs = list(zip(runs.get("siltfs, bucket", ()), runs.get("siltfs, local", ())))
    if pairs:
        ratio = median(local["seconds"] / bucket["seconds"] for bucket, local in pairs)
        yield f"- ratio, median of the pairs: {ratio:.2f} (target ≥ 0.8{'' if ratio >= 0.8 else ', **not met**'})"
    yield ""


def _stream(record):
    for name, runs in _runs(record, "stream").items():
        run = runs[0]
        cache = record["options"]["stream_cache_bytes"]
        yield f"## {run['bytes'] / (1 << 30):.0f} GiB through a cache of {cache / (1 << 30):.1f} GiB\n"
        for part in ("write", "read"):
            seconds = run[part]["parts"][part]
            peak = run[part]["peak_rss_bytes_by_process"].get("siltfs", 0)
            yield (f"- {name}, {part}: {run['bytes'] / seconds / _MB:,.0f} MB/s, resident memory of the daemon at its "
                   f"peak {peak / (1 << 20):.0f} MiB (target ≤ {_RSS_TARGET >> 20} MiB"
                   f"{'' if peak <= _RSS_TARGET else ', **not met**'})")
        yield f"- all bytes verified: {'yes' if run['verified'] else 'no'}\n"


def markdown(record):
    lines = ["# siltfs on a bucket\n",
             f"{machine.in_words(record['machine'])}. The service is {record['service']}, on the same machine. "
             f"Rounds: {record['options']['rounds']}.\n"]
    if record["wrong_data"]:
        lines.append("**Wrong data came back: this run has failed.**\n")
    for workload, write in (("backup", _backup), ("ingest", _ingest), ("stream", _stream)):
        if any(run["workload"] == workload for run in record["runs"]):
            lines += write(record)
    lines.append("## Systems\n")
    for name, system in record["systems"].items():
        words = system["left_out"] or f"version {system['version']}" + (f"; {system['remark']}" if system["remark"] else "")
        lines.append(f"- {name}: {words}")
        lines += [f"  - **failed** in {workload}: {reason}" for workload, reason in system["failed"].items()]
    return "\n".join(lines).rstrip() + "\n"
