"""Reads what `siltfs --help` says: commands, options, arguments and mount options.

tools/completions/generate and the tests of completions use it.
"""

import os
import re
import subprocess
from dataclasses import dataclass, field


@dataclass
class Option:
    names: list  # ["-h", "--help"]
    value: str  # the kind of its value, such as "SIZE"; empty if it takes none
    text: str
    repeated: bool = False

    def long(self):
        return [name for name in self.names if name.startswith("--")]

    def short(self):
        return [name for name in self.names if not name.startswith("--")]


@dataclass
class Command:
    words: list  # ["siltfs", "index", "stat"], or ["mkfs.siltfs"]
    text: str = ""
    options: list = field(default_factory=list)
    usage: list = field(default_factory=list)  # the words after [OPTIONS] in the line "Usage: ..."
    arguments: list = field(default_factory=list)  # ["STORE", "NAME..."]; dots if it may be repeated
    commands: list = field(default_factory=list)
    mount_options: list = field(default_factory=list)  # (name, value, text)


def run_help(program, words):
    path = os.path.join(os.path.dirname(program), words[0])
    done = subprocess.run([path, *words[1:], "--help"], capture_output=True, text=True, check=True)
    return done.stdout


def entries(lines):
    """Returns [left, description] of lines like "  --json    Print JSON". A long left part stands
    alone, and its description in the next line, which is indented further."""
    rows = []
    for line in lines:
        words = line.strip()
        if line.startswith("   ") and rows:
            rows[-1][1] = f"{rows[-1][1]} {words}".strip()
        elif match := re.match(r"(\S.*?)\s{2,}(\S.*)", words):
            rows.append([match[1], match[2]])
        elif " " in words and not words.startswith("-") and not words.endswith(" REQUIRED"):
            rows.append(words.split(" ", 1))  # only one space before the description
        else:
            rows.append([words, ""])
    return rows


def parse_option(left, text):
    left = re.sub(r" (Excludes|Needs):.*", "", left)
    names, _, value = left.partition(" ")
    value = value.replace("REQUIRED", "").strip()
    repeated = value.endswith("...") and value != "OPT,..."
    value = re.sub(r"( \.\.\.$|=.*|:.*)", "", value) if not value.startswith("NAME=") else "NAME=VALUE"
    return Option(names.split(","), value.strip(), text, repeated)


def read_command(program, words, text=""):
    """Returns the command with its subcommands, as a tree."""
    command = Command(words, text)
    sections = {}
    lines = run_help(program, words).splitlines()
    section = None
    for line in lines:
        if usage := re.fullmatch(r"Usage: .*\[OPTIONS\](.*)", line):
            command.usage = usage[1].split()
        heading = re.fullmatch(r"([A-Z][a-z ]+):", line)
        if heading:
            section = heading[1]
            sections[section] = []
        elif section and line.startswith("  "):
            sections[section].append(line)
    for left, description in entries(sections.get("Options", [])):
        command.options.append(parse_option(left, description))
    for left, description in entries(sections.get("Positionals", [])):
        more = "..." if re.search(r" TEXT (\.\.\.|x \d)", left) else ""
        command.arguments += [name + more for name in re.sub(r" (TEXT|REQUIRED|x 2).*", "", left).split()]
    for left, description in entries(sections.get("Mount options", [])):
        name, _, value = left.partition("=")
        command.mount_options.append((name, value, description))
    for left, description in entries(sections.get("Subcommands", [])):
        command.commands.append(read_command(program, [*words, left], description))
    return command


HELPERS = ["mkfs.siltfs", "mount.siltfs", "umount.siltfs", "fsck.siltfs"]


def read_all(program):
    """Returns the command siltfs and the programs that mount(8) and fsck(8) call."""
    return [read_command(program, [name]) for name in ["siltfs", *HELPERS]]


def every_command(command):
    yield command
    for inner in command.commands:
        yield from every_command(inner)
