"""Computes the medians of the rounds, and their ratios to those of the best peer in the same
run."""
from statistics import median

from peers import transports

MB = 1e6
# For each figure: its name, and its targets for tar and tree as multiples of the best peer's figure.
TARGETS = {
    "first": ("first backup", {"tar": 1.5, "tree": 1.5}),
    "next": ("next backups", {"tar": 2.5, "tree": 2.5}),
    "ratio": ("bytes stored, ratio", {"tar": 1.2, "tree": 1.15}),
    "restore": ("cold restore", {"tar": 1.5, "tree": 1.5}),
}
METADATA_TARGET = 1.0
DAEMON_BYTES_TARGET = 128 << 20


def figure(values):
    """Returns the median of a list, with its range."""
    return {"median": median(values), "least": min(values), "most": max(values), "rounds": list(values)}


def _runs(record, workload):
    by_system = {}
    for run in record["runs"]:
        if run["workload"] == workload and workload not in record["systems"][run["system"]]["failed"]:
            by_system.setdefault(run["system"], []).append(run)
    return by_system


def _rate(step):
    return step["bytes"] / step["seconds"] / MB


def _backup_figures(runs):
    firsts = [run["generations"][0] for run in runs]
    nexts = [run["generations"][1:] for run in runs]
    found = {
        "first": figure([_rate(step) for step in firsts]),
        "ratio": figure([sum(step["bytes"] for step in run["generations"]) /
                         run["generations"][-1]["stored_bytes"] for run in runs]),
        "stored_bytes": figure([run["generations"][-1]["stored_bytes"] for run in runs]),
        "stored_by_generation": [median(steps) for steps in zip(
            *([step["stored_bytes"] for step in run["generations"]] for run in runs))],
        "restore": figure([_rate(run["restore"]) for run in runs]),
        "cpu_first": figure([step["cpu_seconds"] for step in firsts]),
        "cpu_restore": figure([run["restore"]["cpu_seconds"] for run in runs]),
        "peak_rss_bytes": max(step["peak_rss_bytes"] for run in runs
                              for step in [*run["generations"], run["restore"]]),
    }
    if "settled" in runs[0]:
        found["settled"] = {
            "stored_bytes": figure([run["settled"]["stored_bytes"] for run in runs]),
            "ratio": figure([sum(step["bytes"] for step in run["generations"]) / run["settled"]["stored_bytes"]
                             for run in runs]),
            "cpu": figure([run["settled"]["cpu_seconds"] for run in runs]),
            "restore": figure([_rate(run["restore_settled"]) for run in runs]),
        }
    if nexts[0]:
        # A round's figure is the median of its generations. The range is over the generations of
        # all rounds.
        every = [_rate(step) for steps in nexts for step in steps]
        found["next"] = {**figure([median(map(_rate, steps)) for steps in nexts]),
                         "least": min(every), "most": max(every)}
        found["cpu_next"] = figure([sum(step["cpu_seconds"] for step in steps) for steps in nexts])
    return found


def _against(ours, theirs, target):
    """Compares our figure with that of the system with the best median among `theirs`. Each round
    has a ratio of its two figures; the range is from the lowest to the highest of these ratios."""
    best = max(theirs, key=lambda name: theirs[name]["median"])
    ratio = ours["median"] / theirs[best]["median"]
    pairs = [mine / other for mine, other in zip(ours["rounds"], theirs[best]["rounds"])]
    return {"best": best, "ratio": ratio, "least": min(pairs), "most": max(pairs), "target": target,
            "met": None if target is None else ratio >= target}


def _comparisons(systems, roles, role, keys_and_targets):
    """For each key, compares siltfs with the best system of a role. Also compares siltfs under a
    memory limit with siltfs without this limit."""
    against, limited = {}, {}
    for key, target in keys_and_targets:
        of_role = {wanted: {name: figures[key] for name, figures in systems.items()
                            if roles[name] == wanted and key in figures} for wanted in (role, "siltfs", "limited")}
        if not of_role["siltfs"]:
            continue
        if of_role[role]:
            against[key] = _against(of_role["siltfs"]["siltfs"], of_role[role], target)
        for figures in of_role["limited"].values():
            limited[key] = _against(figures, of_role["siltfs"], None)
    return {"against": against, "limited": limited}


def _steps(run):
    """Returns all measured steps of a pass, for any workload."""
    if "generations" in run:
        later = [run[step] for step in ("settled", "restore_settled") if step in run]
        return [*run["generations"], run["restore"], *later]
    return list(run.get("steps", run.get("jobs", {})).values())


def daemon_peak(record):
    """Returns the peak resident bytes of siltfs's daemon in all steps, or None if there is no such
    step."""
    return max((step["peak_rss_bytes_by_process"].get("siltfs", 0) for run in record["runs"]
                if record["systems"][run["system"]]["role"] == "siltfs" for step in _steps(run)), default=None)


def _daemon_cpu(runs):
    """Returns the daemon's CPU seconds in each step of the workload metadata, for systems that have
    such figures."""
    found = {}
    for name, of_system in runs.items():
        seconds = {step: [transports.daemon_cpu_seconds([run["steps"][step]]) for run in of_system]
                   for step in of_system[0]["steps"]}
        if not any(None in values for values in seconds.values()):
            found[name] = {step: figure(values) for step, values in seconds.items()}
    return found


def summarise(record):
    """Returns the figures of every measured workload."""
    roles = {name: system["role"] for name, system in record["systems"].items()}
    summary = {}
    for workload in ("tar", "tree"):
        if runs := _runs(record, workload):
            systems = {name: _backup_figures(of_system) for name, of_system in runs.items()}
            targets = [(key, by_workload[workload]) for key, (_, by_workload) in TARGETS.items()]
            summary[workload] = {"systems": systems, **_comparisons(systems, roles, "peer", targets),
                                 "transports": transports.ratios(record, runs)}
    for workload, part, value, target in (("metadata", "steps", "files_per_s", METADATA_TARGET),
                                          ("fio", "jobs", "bytes_per_s", None)):
        if runs := _runs(record, workload):
            systems = {name: {step: figure([run[part][step][value] for run in of_system])
                              for step in of_system[0][part]} for name, of_system in runs.items()}
            targets = [(step, target) for step in next(iter(systems.values()))]
            summary[workload] = {"systems": systems, **_comparisons(systems, roles, "passthrough", targets)}
            if workload == "metadata":
                summary[workload].update(daemon_cpu=_daemon_cpu(runs), transports=transports.ratios(record, runs))
    return summary
