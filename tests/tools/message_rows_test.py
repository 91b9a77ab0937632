"""Compares the messages of the sources with docs/messages.md, which has the same rows as the
program's table (message_table_test.cc).

Each sentence of an error that a command can print must have a row, so that it has an identifier,
a cause and a remedy. Damage and newer stores have rows for their exit codes instead. And the text
of each row must be in the sources: otherwise a message was reworded or removed.

  message_rows_test.py SOURCE_DIRECTORY
"""
import errno
import os
import re
import sys
import unittest
from pathlib import Path

SOURCES = Path(sys.argv.pop(1))

# The folders whose errors reach a command: as its own errors, or as the answers of a daemon. Other
# folders report damage, or errors that the kernel turns into numbers.
FOLDERS = [
    "tools/siltfs", "tools/import", "tools/export", "tools/report", "fs/attach", "fs/bucket", "fs/check",
    "fs/clone", "fs/control", "fs/core", "fs/export", "fs/fuse", "fs/gc", "fs/import",
    "fs/interface", "fs/open", "fs/recompression", "fs/recovery", "fs/repair", "fs/replication",
    "fs/rings", "fs/scrub", "fs/shipping", "fs/snapshots", "fs/space", "fs/stream", "fs/transfer", "fs/usage",
    "store/bucket", "store/env", "store/object", "store/s3", "store/superblock",
]
# The rows S0012 and S0013 are for all sentences of these codes.
CODES_WITH_ROWS = {"kCorruption", "kNeedsNewer"}
# Files of tests and of programs that are no commands.
OTHER_FILES = {"store/env/sim_disk.cc", "store/env/sim_env.cc", "store/env/sim_names.cc", "store/object/memory_object_store.cc"}
# Sentences that no command prints in this form, by the reason.
LEFT_OUT = {
    "the command that prints it adds what is true afterwards": {
        "was interrupted", "was interrupted; ", "the store is closed",
        "the index does not become durable",
    },
    "the caller handles it": {
        "a page has at least one object", "an object can have at most 5 GiB",
        "the range ends beyond the largest offset", "the segment is too large for an object",
        "the content does not wait for its upload",
        "the log has grown", "zstd failed", "segment {} was put and is not uploaded",
        "the service describes the object in some answers only", "line ",
        # The class puts the rest of the sentence behind it.
        "the service ",
        "a new delta needs one of them", "no name", "no cookie", "none", "no id ranges",
        "a piece was cut", "the base {} is not whole at its place", "a check writes nothing",
        "a sender puts no nodes", "no process listens on it", "no longer listens",
        "is not a socket", "the path is too long for a socket", "the daemon has already reported",
        "the recipe of a snapshot's file cannot be shared",
    },
    "a program gets it as an error number": {
        "the name is that of the directory of snapshots",
        "the directory of snapshots has no attributes", "is a directory", "is not a directory",
        "a rollback has changed the file since it was looked up", "snapshot {} was removed",
        "inode {} is no directory", "permission denied",
    },
    "a mistake of the program itself": {
        "a snapshot can only be opened for reading", "the descriptor is no socket for packets",
        "the descriptor is no open /dev/fuse", "the depth of a read queue is from 1 to 1024",
        "a read beyond the largest offset",
    },
    "only benchmarks and tests use it": {
        "does not say how much memory is resident", "does not say how much memory was resident",
        "can't be written", "is {} bytes long, at most {} were expected",
    },
    "it has no words of its own": {"{}: {}"},
}

# The texts of rows that the sources do not have as they are: those of the C library, those of the
# library for command lines, and two that are put together.
OTHER_TEXTS = {os.strerror(number) for number in errno.errorcode} | {
    "Value ", " not in range", " excludes -", "the name is empty", ": is not mounted",
}

LITERAL = r'"((?:[^"\\]|\\.)*)"'
ERROR = re.compile(
    r"(?:Status\s*(?:\w+)?\s*[({]|return\s*\{|\bFail\(\s*surroundings,)"
    r"\s*(?:StatusCode|ExitCode)::(k\w+),\s*(?:fmt::format\(|std::string\()?"
    r'((?:\s*"(?:[^"\\]|\\.)*")+)')
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')


def joined(literals):
    parts = re.findall(LITERAL, literals)
    return "".join(part.encode().decode("unicode_escape") for part in parts)


def without_values(text, value):
    return re.sub(r"\{[^{}]*\}", value, text)


def code_of(path):
    # A comment may have quotation marks.
    return re.sub(r"(?m)^\s*//.*$", "", path.read_text())


def rows():
    found = []
    for line in (SOURCES / "docs/messages.md").read_text().splitlines():
        row = re.match(r"\| (S\d{4}) \| `(.*?)` \| ", line)
        if row:
            found.append((row[1], row[2]))
    return found


def matches(sentence, text):
    at = 0
    for part in text.split("*"):
        place = sentence.find(part, at)
        if place < 0:
            return False
        at = place + len(part)
    return True


class MessageRowsTest(unittest.TestCase):
    def errors(self):
        for folder in FOLDERS:
            self.assertTrue((SOURCES / folder).is_dir(), folder)
            for path in sorted((SOURCES / folder).rglob("*")):
                name = str(path.relative_to(SOURCES))
                if path.suffix not in {".cc", ".h"} or name in OTHER_FILES:
                    continue
                for found in ERROR.finditer(code_of(path)):
                    yield name, found[1], joined(found[2])

    def test_each_message_has_a_row(self):
        texts = [text for _, text in rows()]
        left_out = set().union(*LEFT_OUT.values())
        count = 0
        missing = set()
        for name, code, sentence in self.errors():
            count += 1
            if code in CODES_WITH_ROWS or sentence in left_out:
                continue
            printed = "/path: " + without_values(sentence, "x") + " y"
            if not any(matches(printed, text) for text in texts):
                missing.add(f"{name}: {sentence}")
        self.assertGreater(count, 300, "the test does not find the messages any more")
        self.assertEqual(set(), missing, "messages without a row in docs/messages.md")

    def test_each_row_is_a_message(self):
        sentences = set()
        for folder in ["tools", "fs", "store", "index", "chunker"]:
            for path in (SOURCES / folder).rglob("*"):
                tables = path.name.endswith("_messages.cc") or path.name == "message_table.cc"
                if path.suffix in {".cc", ".h"} and not tables:
                    for found in LITERALS.finditer(code_of(path)):
                        sentences.add(without_values(joined(found[0]), "*"))
        everything = "\n".join(sorted(sentences))
        missing = {
            f"{identifier}: {part}"
            for identifier, text in rows() for part in text.split("*")
            if part.strip() not in everything
            and part.strip() not in {text.strip() for text in OTHER_TEXTS}
        }
        self.assertEqual(set(), missing, "rows whose text no source has")

    def test_nothing_is_left_out_in_vain(self):
        sentences = {sentence for _, _, sentence in self.errors()}
        self.assertEqual(set(), set().union(*LEFT_OUT.values()) - sentences)


if __name__ == "__main__":
    unittest.main()
