#!/usr/bin/env python3
"""tasks_table_test.py SOURCE: the table of docs/tasks.md has the numbers of commands that the
sections of the document have, and the numbers of the peers' commands that its end lists."""

import re
import sys
import unittest

with open(sys.argv[1] + "/docs/tasks.md", encoding="utf-8") as file:
    DOCUMENT = file.read()
LEAST_TASKS = 20


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def table():
    """{number: (title, [siltfs, restic, borg, ZFS])}, with None for a dash."""
    rows = {}
    for line in DOCUMENT.splitlines():
        match = re.match(r"\| (\d+)\. \[([^]]*)\]", line)
        if match:
            counts = [None if cell == "-" else int(cell) for cell in cells(line)[1:5]]
            rows[int(match[1])] = (match[2], counts)
    return rows


def commands_of_sections():
    """{number: (title, number of commands)}. A paragraph with "not counted" excludes the commands up
    to the next paragraph."""
    found = {}
    for part in re.split(r"^## ", DOCUMENT, flags=re.MULTILINE)[1:]:
        match = re.match(r"(\d+)\. (.*)\n", part)
        if not match:
            continue
        counted, commands = True, 0
        for line in part.splitlines()[1:]:
            if line and not line.startswith(" "):
                counted = "not counted" not in line
            elif counted and line.startswith(("    $ ", "    apt install")):
                commands += 1
        found[int(match[1])] = (match[2], commands)
    return found


def commands_of_peers():
    """{number: [restic, borg, ZFS]}: how many commands each cell of the last table has."""
    found = {}
    for line in DOCUMENT[DOCUMENT.index("## How the commands are counted"):].splitlines():
        match = re.match(r"\| (\d+)(?:, (\d+))? \|", line)
        if match:
            counts = [cell.count("`") // 2 for cell in cells(line)[1:4]]
            for number in filter(None, match.groups()):
                found[int(number)] = counts
    return found


class Tasks(unittest.TestCase):
    def test_each_section_has_its_number_of_commands(self):
        rows = table()
        sections = commands_of_sections()
        self.assertGreaterEqual(len(rows), LEAST_TASKS)
        self.assertEqual(set(rows), set(sections) - {0})
        for number, (title, counts) in rows.items():
            with self.subTest(task=number):
                self.assertEqual((title, counts[0]), sections[number])

    def test_the_commands_of_the_peers_are_listed(self):
        peers = commands_of_peers()
        for number, (_, counts) in table().items():
            with self.subTest(task=number):
                self.assertEqual([count or 0 for count in counts[1:]], peers[number])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
