"""Computes the ratios of systems that use io_uring to the same systems that use /dev/fuse, in the
same run."""
from statistics import median

_DAEMON = "CPU of the daemon"


def _by_name(run):
    """Returns the steps of a pass as {name: list of steps}."""
    if "steps" in run:
        return {name: [step] for name, step in run["steps"].items()}
    nexts = run["generations"][1:]
    return {"first backup": run["generations"][:1], **({"next backups": nexts} if nexts else {}),
            "cold restore": [run["restore"]]}


def _rate(steps):
    """Returns the rate of one step, or the median of the rates of several."""
    return median(step["files_per_s"] if "files_per_s" in step else step["bytes"] / step["seconds"] for step in steps)


def daemon_cpu_seconds(steps):
    """Returns the CPU seconds of the daemon in all these steps, or None if they were not measured."""
    found = [step.get("daemon_cpu_seconds") for step in steps]
    return None if None in found else sum(found)


def _values(run):
    values = {}
    for name, steps in _by_name(run).items():
        values[name] = _rate(steps)
        if seconds := daemon_cpu_seconds(steps):
            values[f"{name}, {_DAEMON}"] = seconds
    return values


def _ratio(ours, theirs):
    pairs = [mine / other for mine, other in zip(ours, theirs)]
    return {"ratio": median(ours) / median(theirs), "least": min(pairs), "most": max(pairs)}


def ratios(record, runs):
    """Returns {system that uses io_uring: {"counterpart": name, "ratios": {figure: ratio}}} for one
    workload. `runs` has the passes of the workload as {system: list of passes}."""
    found = {}
    for name, of_system in runs.items():
        counterpart = record["systems"][name].get("counterpart")
        if counterpart not in runs:
            continue
        ours, theirs = ([_values(run) for run in passes] for passes in (of_system, runs[counterpart]))
        keys = [key for key in ours[0] if all(key in values for values in ours + theirs)]
        found[name] = {"counterpart": counterpart,
                       "ratios": {key: _ratio(*([values[key] for values in side] for side in (ours, theirs)))
                                  for key in keys}}
    return found
