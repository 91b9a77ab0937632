#!/usr/bin/env python3
"""completions_test.py SOURCE SILTFS: bash, zsh and fish offer what --help lists, and nothing else.

The shells are real ones, which load the completions as a user's shell does. The files for zsh and
fish are those that tools/completions/generate makes from the present --help.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = sys.argv[1]
SILTFS = sys.argv[2]
COMPLETIONS = os.path.join(SOURCE, "tools/completions")
sys.path.insert(0, COMPLETIONS)
import command_help  # noqa: E402

LIMIT = 300  # seconds for one shell
END = "end of candidates"
MOUNT_LINES = ("siltfs mount -o ", "mount.siltfs -o ")
VALUES = {
    "siltfs m": {"mkfs", "mount", "metrics"},
    "siltfs mkfs --index-engine sk": {"skimpy_stash"},
    "mkfs.siltfs --delta o": {"on", "off"},
    "siltfs index plan --trie w": {"weak"},
}
COMMANDS = command_help.read_all(SILTFS)
PROGRAM = COMMANDS[0]


def output_of(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT, check=True)
    return done.stdout


def in_bash(lines):
    script = f"source {COMPLETIONS}/siltfs.bash\n"
    for line in lines:
        words = line.split(" ")
        script += (
            f"COMPREPLY=(); COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}\n"
            f"_siltfs; printf '%s\\n' \"${{COMPREPLY[@]}}\" {END!r}\n"
        )
    return output_of("bash", "-c", script)


def in_zsh(lines):
    capture = os.path.join(SOURCE, "tests/tools/captured_completion.zsh")
    return output_of("zsh", "-f", capture, COMPLETIONS, *lines)


def in_fish(lines):
    script = f"source {COMPLETIONS}/siltfs.fish\n"
    for line in lines:
        script += f"complete -C '{line}'; echo {END!r}\n"
    return output_of("fish", "--no-config", "-c", script)


SHELLS = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}
OFFERS = {shell: {} for shell in SHELLS}  # by command line


def every_line():
    for top in COMMANDS:
        for command in command_help.every_command(top):
            words = " ".join(command.words)
            yield from (words + " ", words + " --")
    yield from MOUNT_LINES
    yield from VALUES


def ask(shell):
    """A shell takes long to start, so one answers all lines."""
    lines = sorted(set(every_line()))
    answers = SHELLS[shell](lines).split(END + "\n")
    if len(answers) != len(lines) + 1:
        raise AssertionError(f"{shell} has answered {len(answers) - 1} of {len(lines)} lines")
    for line, answer in zip(lines, answers):
        # fish adds descriptions.
        offered = {word for row in answer.splitlines() for word in row.split("\t")[0].split()}
        OFFERS[shell][line] = offered


def longs(command):
    return {name for option in command.options for name in option.long()}


class Completions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for shell in SHELLS:
            ask(shell)

    def check(self, shell, line, wanted):
        with self.subTest(shell=shell, line=line):
            self.assertEqual(OFFERS[shell][line], wanted)

    def test_the_generated_files_are_those_of_the_present_help(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([f"{COMPLETIONS}/generate", SILTFS, directory], check=True)
            for name in ("_siltfs", "siltfs.fish"):
                with open(os.path.join(directory, name), encoding="utf-8") as made:
                    with open(os.path.join(COMPLETIONS, name), encoding="utf-8") as kept:
                        self.assertEqual(
                            kept.read(), made.read(), f"run tools/completions/generate SILTFS {COMPLETIONS}"
                        )

    def test_the_arguments_of_a_command_are_those_of_its_usage(self):
        for command in (c for top in COMMANDS for c in command_help.every_command(top)):
            with self.subTest(command=" ".join(command.words)):
                # PATH(2x) are at least two, and PATH...(1x) at least one.
                words = [re.sub(r"[][]|\(1x\)", "", word) for word in command.usage]
                words = [re.sub(r"\(\d+x\)", "...", word) for word in words]
                self.assertEqual(command.arguments, [word for word in words if word != "SUBCOMMAND"])

    def test_every_shell_offers_every_command(self):
        for group in command_help.every_command(PROGRAM):
            if not group.commands:
                continue
            wanted = {command.words[-1] for command in group.commands}
            line = " ".join(group.words) + " "
            for shell in SHELLS:
                # help and version are words that only siltfs itself understands as commands.
                extra = {"help", "version"} & OFFERS[shell][line] if group is PROGRAM else set()
                self.check(shell, line, wanted | extra)

    def test_every_shell_offers_every_long_option(self):
        for top in COMMANDS:
            for command in command_help.every_command(top):
                for shell in SHELLS:
                    self.check(shell, " ".join(command.words) + " --", longs(command))

    def test_every_shell_offers_every_mount_option(self):
        mount = next(c for c in PROGRAM.commands if c.words[-1] == "mount")
        wanted = {name for name, _, _ in mount.mount_options}
        for shell in SHELLS:
            for line in MOUNT_LINES:
                with self.subTest(shell=shell, line=line):
                    offered = {word.split("=")[0] for word in OFFERS[shell][line]}
                    self.assertTrue(wanted <= offered, wanted - offered)

    def test_values_and_letters(self):
        for shell in SHELLS:
            for line, wanted in VALUES.items():
                self.check(shell, line, wanted)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
