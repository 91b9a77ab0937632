#!/usr/bin/env python3
"""completions_test.py SOURCE SILTFS: bash, zsh and fish offer what --help lists, and nothing else.

The shells are real ones, which load the completions as a user's shell does. The files for zsh and
fish are those that tools/completions/generate makes from the present --help.
"""

import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = sys.argv[1]
SILTFS = sys.argv[2]
COMPLETIONS = os.path.join(SOURCE, "tools/completions")
sys.path.insert(0, COMPLETIONS)
import command_help  # noqa: E402

LIMIT = 60  # seconds for one shell
COMMANDS = command_help.read_all(SILTFS)
PROGRAM = COMMANDS[0]


def output_of(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT, check=True)
    return done.stdout


def in_bash(line):
    words = line.split(" ")
    script = (
        f"source {COMPLETIONS}/siltfs.bash; COMP_WORDS=({' '.join(repr(word) for word in words)}); "
        f"COMP_CWORD={len(words) - 1}; _siltfs; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    return set(output_of("bash", "-c", script).split())


def in_zsh(line):
    capture = os.path.join(SOURCE, "tests/tools/captured_completion.zsh")
    return set(output_of("zsh", "-f", capture, COMPLETIONS, line).split())


def in_fish(line):
    script = f"source {COMPLETIONS}/siltfs.fish; complete -C '{line}'"
    return {row.split("\t")[0] for row in output_of("fish", "--no-config", "-c", script).splitlines()}


SHELLS = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}


def longs(command):
    return {name for option in command.options for name in option.long()}


class Completions(unittest.TestCase):
    def check(self, shell, line, wanted):
        with self.subTest(shell=shell, line=line):
            self.assertEqual({word for word in SHELLS[shell](line) if word}, wanted)

    def test_the_generated_files_are_those_of_the_present_help(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([f"{COMPLETIONS}/generate", SILTFS, directory], check=True)
            for name in ("_siltfs", "siltfs.fish"):
                with open(os.path.join(directory, name), encoding="utf-8") as made:
                    with open(os.path.join(COMPLETIONS, name), encoding="utf-8") as kept:
                        self.assertEqual(
                            kept.read(), made.read(), f"run tools/completions/generate SILTFS {COMPLETIONS}"
                        )

    def test_every_shell_offers_every_command(self):
        for group in command_help.every_command(PROGRAM):
            if not group.commands:
                continue
            wanted = {command.words[-1] for command in group.commands}
            line = " ".join(group.words) + " "
            for shell in SHELLS:
                # help and version are words that only siltfs itself understands as commands.
                extra = {"help", "version"} & SHELLS[shell](line) if group is PROGRAM else set()
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
            for line in ("siltfs mount -o ", "mount.siltfs -o "):
                with self.subTest(shell=shell, line=line):
                    offered = {word.split("=")[0] for word in SHELLS[shell](line)}
                    self.assertTrue(wanted <= offered, wanted - offered)

    def test_values_and_letters(self):
        for shell in SHELLS:
            self.check(shell, "siltfs m", {"mkfs", "mount", "metrics"})
            self.check(shell, "siltfs mkfs --index-engine sk", {"skimpy_stash"})
            self.check(shell, "mkfs.siltfs --delta o", {"on", "off"})
            self.check(shell, "siltfs index plan --trie w", {"weak"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
