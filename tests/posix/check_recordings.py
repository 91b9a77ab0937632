#!/usr/bin/env python3
"""Compares the recordings of the documents with what the same sessions show now.

usage: check_recordings.py RECORDINGS SESSIONS OUTPUTS DOCUMENT...

RECORDINGS has NAME.cast and NAME.svg for each NAME.sh in SESSIONS, and OUTPUTS has NAME.txt, what the
terminal received now (tools/recordings/record --text). Figures, paths and states may differ; all
other text must be the same, cell by cell. A cell is a text between two or more spaces, or a whole
row of figures. Each picture must be shown by one of the documents, must be small and must end as the
recording does.
"""

import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

LARGEST_PICTURE = 300 * 1024
ERASED = re.compile(r"[^\n]*\r\x1b\[K")  # progress of a command, which may end before it shows any
SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# The daemon's advice depends on the kernel.
ADVICE = re.compile(r"siltfs: mounts are faster.*?docs/performance\.md\)\n", re.DOTALL)
FRAME = re.compile(r"Script (?:started|done).*\n")
CHANGING = [
    (re.compile(r"(files are cut by|chunks are named by) .*"), r"\1"),
    (re.compile(r"through (?:io_uring|/dev/fuse)"), "through #"),
    (re.compile(r"siltfs-quickstart-\w+"), "#"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}"), "#"),  # a UUID
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z"), "#"),
    (re.compile(r"\b(?:idle|running|all known)\b"), "#"),
    (re.compile(r"(?:\d[\d.,:]*[kMG]?)(?: ?(?:B|[KMGTP]iB)\b)?%?"), "#"),
    (re.compile(r"# : #"), "#"),
    (re.compile(r"(?<![\w#])-(?![\w-])"), "#"),  # a figure that does not exist
    (re.compile(r"#/s\b"), "#"),
    (re.compile(r"(?: *#)+ *"), " # "),
]


def cells_of(text):
    text = ADVICE.sub("", FRAME.sub("", SEQUENCE.sub("", ERASED.sub("", text).replace("\r", ""))))
    cells = set()
    for line in text.splitlines():
        line = re.sub(r"[\u2581-\u2590]+", " ", line) if not line.lstrip().startswith("[") else ""
        for change, instead in CHANGING:
            line = change.sub(instead, line)
        for cell in re.split(r" {2,}", line.strip()):
            # The bar of the disk shows dead data only if there is some.
            if re.search(r"[A-Za-z]", cell) and not cell.startswith("\u2593"):
                cells.add(cell.strip(" #"))
    return cells


def read_cast(path):
    with open(path, encoding="utf-8") as file:
        header, *events = [json.loads(line) for line in file]
    assert set(header) == {"version", "width", "height", "title"}, f"{path} has the header {header}"
    return "".join(event[2] for event in events)


def check_picture(path, text):
    size = os.path.getsize(path)
    assert size <= LARGEST_PICTURE, f"{path} has {size} bytes"
    shown = "\n".join(element.text or "" for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text"))
    last = [line for line in SEQUENCE.sub("", text).replace("\r", "").splitlines() if len(line) > 8][-1]
    for word in last.split():
        assert word in shown, f"{path}: \"{word}\" is not shown, but the recording has it; make the picture again"


def main():
    recordings, sessions, outputs = sys.argv[1:4]
    documents = ""
    for path in sys.argv[4:]:
        with open(path, encoding="utf-8") as file:
            documents += file.read()
    names = sorted(name[:-3] for name in os.listdir(sessions))
    assert names, "there are no sessions"
    expected = sorted(f"{name}.{kind}" for name in names for kind in ("cast", "svg"))
    assert sorted(os.listdir(recordings)) == expected, f"{recordings} has {os.listdir(recordings)}"
    stale = 0
    for name in names:
        recorded = read_cast(f"{recordings}/{name}.cast")
        with open(f"{outputs}/{name}.txt", encoding="utf-8", newline="") as file:
            now = file.read()
        check_picture(f"{recordings}/{name}.svg", recorded)
        assert f"recordings/{name}.svg" in documents, f"no document shows {name}.svg"
        before, after = cells_of(recorded), cells_of(now)
        for cell in sorted(before - after):
            print(f"{name}: only in the recording: {cell}")
        for cell in sorted(after - before):
            print(f"{name}: not in the recording: {cell}")
        stale += before != after
        assert len(after) > 8, f"{name} shows only {after}"
        print(f"{name}: {len(after)} cells")
    if stale:
        sys.exit("a recording is stale: tools/recordings/record SILTFS docs/recordings makes it again")


if __name__ == "__main__":
    main()
