#!/usr/bin/env python3
"""watch_tests.py TESTS PARENT

Prints what the processes of a test wait for, shortly before ctest ends the test for its time limit. The
output of ctest shows only what a test has printed, so without this the cause of a hang is lost. ctest is a
child of the process PARENT. TESTS is a file with the output of `ctest --show-only=json-v1`, made before the
run, because that command empties the log of a run. Runs until it is killed, or until PARENT has ended.
"""
import json
import os
import sys
import time

BEFORE_LIMIT = 15  # seconds
PAUSE = 3
LONGEST_LINE = 160


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def arguments(pid):
    return [word.decode(errors="replace") for word in read(f"/proc/{pid}/cmdline").split(b"\0")[:-1]]


def status(pid):
    """The state, the parent and the age in seconds of a process; None if it has ended."""
    text = read(f"/proc/{pid}/stat").decode(errors="replace")
    if not text:
        return None
    fields = text[text.rindex(")") + 2:].split()
    now = float(read("/proc/uptime").split()[0])
    return fields[0], int(fields[1]), now - int(fields[19]) / os.sysconf("SC_CLK_TCK")


def processes():
    """The status of each process, by its pid."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (state := status(name)):
            found[int(name)] = state
    return found


def limits(path):
    """The tests with a time limit, as tuples of command, limit in seconds and name."""
    found = []
    for test in json.loads(read(path))["tests"]:
        for wanted in test.get("properties", []):
            if wanted["name"] == "TIMEOUT" and "command" in test:
                found.append((test["command"], wanted["value"], test["name"]))
    return found


def test_of(pid, tests):
    """The test whose process this is; None if it is not known."""
    words = arguments(pid)
    for test in tests:
        command = test[0]
        # A test of a mount goes on as `unshare … SCRIPT ARGUMENT…` in namespaces of its own.
        if words == command or (command[1:] and words[-len(command[1:]):] == command[1:]):
            return test
    return None


def describe(pid, known, depth):
    state, _, age = known[pid]
    words = " ".join(arguments(pid)) or read(f"/proc/{pid}/comm").decode(errors="replace").strip()
    yield f"{'  ' * depth}{pid} {state} {age:.0f} s: {words}"[:LONGEST_LINE]
    try:
        threads = sorted(os.listdir(f"/proc/{pid}/task"), key=int)
    except OSError:
        threads = []
    waits = {}
    for thread in threads:
        point = read(f"/proc/{pid}/task/{thread}/wchan").decode(errors="replace") or "?"
        waits[point] = waits.get(point, 0) + 1
    yield f"{'  ' * depth}  threads wait in: " + ", ".join(f"{point} x {n}" for point, n in waits.items())
    for child, (_, parent, _) in known.items():
        if parent == pid:
            yield from describe(child, known, depth + 1)


def main():
    tests, parent = limits(sys.argv[1]), int(sys.argv[2])
    told = set()
    while os.path.exists(f"/proc/{parent}"):
        time.sleep(PAUSE)
        known = processes()
        runners = {pid for pid, (_, its_parent, _) in known.items()
                   if its_parent == parent and os.path.basename((arguments(pid) or [""])[0]) == "ctest"}
        for pid, (_, its_parent, age) in known.items():
            if its_parent not in runners or pid in told:
                continue
            test = test_of(pid, tests)
            if test is None or age < test[1] - BEFORE_LIMIT:
                continue
            _, limit, name = test
            told.add(pid)
            print(f"\n== {name} will reach its limit of {limit:.0f} s. Its processes:", *describe(pid, known, 1),
                  sep="\n", flush=True)


if __name__ == "__main__":
    main()
