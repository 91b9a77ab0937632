#!/usr/bin/env python3
"""check_folder_graph.py SOURCE-ROOT DIRECTORY

Checks which headers the include directories of each target reach. DIRECTORY/folders.expected has these lines:

  every: FOLDER...                 all folders
  FOLDER TARGET: MAY...            the folders, or single headers, that FOLDER may include

DIRECTORY/NAME.includes lists the include directories of the target of a folder, one in a line, where
NAME is the folder with "_" for "/". For each folder the script looks for one header of each other
folder in these directories, as a compiler does for an #include with quotes. A header of a folder that
it may include must be found, with everything that this header includes from the project. Any other one
must not be found.
"""

import functools
import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@functools.cache
def includes_of(path):
    with open(path, encoding="utf-8") as file:
        return INCLUDE.findall(file.read())


def find(header, directories):
    """The path of the header in the first of the directories that has it, or None."""
    for directory in directories:
        path = os.path.join(directory, header)
        if os.path.isfile(path):
            return path
    return None


def missing_from(header, directories, seen):
    """What is not found of the header and of all that it includes, as pairs of a header and its includer."""
    waiting, missing = [(header, None)], []
    while waiting:
        name, includer = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        path = find(name, directories)
        if path is None:
            missing.append((name, includer))
        else:
            waiting.extend((inner, name) for inner in includes_of(path))
    return missing


def header_of(root, folder):
    """A header that stands for the folder. A name of a header stands for itself."""
    if folder.endswith(".h"):
        names = [folder]
    else:
        names = sorted(f"{folder}/{name}" for name in os.listdir(os.path.join(root, folder)) if name.endswith(".h"))
    if not names or not os.path.isfile(os.path.join(root, names[0])):
        raise SystemExit(f"{folder}: there is no such header, or the folder has none")
    return names[0]


def faults_of(root, folder, may, every, directories):
    faults, seen = [], set()
    for allowed in [folder, *may]:
        for name, includer in missing_from(header_of(root, allowed), directories, seen):
            reason = f", which {includer} includes" if includer else ""
            faults.append(f"{folder}: it may include {allowed}, but {name}{reason} is not found")
    for other in every:
        if other == folder or other in may:
            continue
        path = find(header_of(root, other), directories)
        if path:
            faults.append(f"{folder}: it must not include {other}, but {path} is found")
    return faults


def main():
    root, checked = sys.argv[1:]
    with open(os.path.join(checked, "folders.expected"), encoding="utf-8") as file:
        lines = file.readlines()
    every, expectations = [], []
    for line in lines:
        subject, _, rest = line.partition(":")
        if subject == "every":
            every = rest.split()
        elif subject.strip():
            expectations.append((*subject.split(), rest.split()))
    if not every or not expectations:
        raise SystemExit("check_folder_graph.py: there is nothing to check")
    faults = []
    for folder, target, may in expectations:
        try:
            with open(os.path.join(checked, folder.replace("/", "_") + ".includes"), encoding="utf-8") as file:
                directories = file.read().splitlines()
        except FileNotFoundError:
            faults.append(f"{folder}: the build has no target {target}")
            continue
        faults += faults_of(root, folder, may, every, directories)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(expectations)} folders, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
