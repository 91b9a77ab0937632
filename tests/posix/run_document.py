#!/usr/bin/env python3
"""run_document.py DOCUMENT: runs the commands of a document as they are printed.

An indented line that begins with "$ " is a command; lines that end with a backslash continue it, and
so do lines that begin with "> ". The other lines of the block are what the command prints, on
standard output and standard error. In them "..." stands for any text, and a line with only "..." for
any lines. A command without such lines may print anything, but must succeed. A command with such
lines may fail, so the document says how: $ command || echo "exit status $?"

Blocks without "$ " are not run. All commands run in one shell (bash), in the directory /.
"""

import re
import subprocess
import sys
import uuid

LIMIT = 300  # seconds for one command


def steps_of(text):
    """Yields (line number, command, printed lines or None)."""
    step = None
    for number, line in enumerate(text.splitlines(), 1):
        body = line[4:] if line.startswith("    ") else None
        if body is not None and body.startswith("$ "):
            if step:
                yield step
            step = [number, body[2:], []]
        elif body is not None and step:
            if body.startswith("> ") or (not step[2] and step[1].endswith("\\")):
                step[1] += "\n" + body.removeprefix("> ")
            else:
                step[2].append(body)
        elif step:
            yield step
            step = None
    if step:
        yield step


def matches(printed, wanted):
    pattern = ""
    for line in wanted:
        if line == "...":
            pattern += r"(?:.*\n)*"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, printed) is not None


class Shell:
    def __init__(self):
        self.process = subprocess.Popen(
            ["timeout", "1500", "bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd="/", text=True, errors="replace",
        )

    def run(self, command):
        """Returns the exit code and what the command prints."""
        mark = uuid.uuid4().hex
        self.process.stdin.write(f"{{ {command}\n}} </dev/null; echo {mark} $?\n")
        self.process.stdin.flush()
        printed = ""
        for line in self.process.stdout:
            before, found, code = line.partition(mark)
            printed += before
            if found:
                return int(code), printed
        sys.exit(f"the shell has ended in: {command}\n{printed}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        steps = list(steps_of(file.read()))
    if len(steps) < 5:
        sys.exit("the document has no commands")
    shell = Shell()
    for number, command, wanted in steps:
        print(f"line {number}: {command}", flush=True)
        code, printed = shell.run(command)
        if code != 0:
            sys.exit(f"FAILED: line {number} ends with {code}: {printed}")
        if wanted and not matches(printed, wanted):
            sys.exit(f"FAILED: line {number} prints:\n{printed}instead of:\n" + "\n".join(wanted))
    print(f"{len(steps)} commands")


if __name__ == "__main__":
    main()
