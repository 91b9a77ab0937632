"""Groups the sources of each target for a unity build.

A unity build compiles all sources of a group together, so the compiler reads each header only once
for the group.

usage: unity_groups.py SOURCE-ROOT MOST-LINES <LIST

Each line of LIST is "TARGET;SOURCE". Each line of the output is "TARGET;GROUP;SOURCE". SOURCE is an
absolute path. A source that is not in the output is compiled alone. The sources of a group have at
most MOST-LINES lines together.

Two sources do not share a group if both define the same name; equal aliases are allowed. They also
do not share a group if one source defines a name that only the other one sees through its headers.
In one compilation such names would collide, or a call would silently choose another overload. Two
sources with different using-directives do not share a group either.

The script relies on the layout that clang-format writes: a line that begins in the first column
declares or defines something in a namespace.
"""

import os
import re
import sys

TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:class|struct|union|enum(?: class)?)\s+(?:\[\[\w+\]\]\s*)?(\w+)")
ALIAS = re.compile(r"^(?:using|namespace)\s+(\w+)\s*=")
USING = re.compile(r"^using\s+[\w:]+::(\w+);")
OTHER = re.compile(r"^(?=[A-Za-z_])[^({=;\[]*?(::)?\b(\w+)\s*[({=;\[]")
ENUM = re.compile(r"^enum (?!class)[^{;]*\{([^}]*)\}", re.MULTILINE)  # its values are names in the namespace
INCLUDE = re.compile(r'^#include "([^"]+)"')
# A source with such a line is compiled alone, because the line would change the meaning of the
# sources that follow in the group.
ALONE = re.compile(r"^(#\s*(define|undef|pragma)\b|extern \"C\")")
DIRECTIVE = re.compile(r"^using namespace ([\w:]+);")
TEMPLATE_ARGUMENTS = re.compile(r"<[^<>]*>")
NO_NAMES = {"using", "namespace", "template", "return", "extern"}


class Source:
    """The names that a file defines (`own`), and the names in its using-declarations (`seen`).

    The names of aliases are in `own` and in `aliases`, because two files may define the same alias.
    """

    def __init__(self, path):
        self.own = set()
        self.aliases = {}
        self.seen = set()
        self.directives = set()
        self.includes = []
        self.alone = False
        with open(path, encoding="utf-8") as file:
            lines = file.readlines()
        self.lines = len(lines)
        for line in lines:
            self.read(line)
        for values in ENUM.findall("".join(lines)):
            self.own.update(re.findall(r"^\s*(\w+)", values.replace(",", "\n"), re.MULTILINE))

    def read(self, line):
        if ALONE.match(line) and "#pragma once" not in line:
            self.alone = True
        alias = ALIAS.match(line)
        if alias:
            self.aliases[alias[1]] = line
        for pattern, names in ((TYPE, self.own), (ALIAS, self.own), (USING, self.seen), (DIRECTIVE, self.directives)):
            found = pattern.match(line)
            if found:
                names.add(found[1])
                return
        include = INCLUDE.match(line)
        if include:
            self.includes.append(include[1])
            return
        if line.startswith("static_assert"):
            return
        bare = line
        while TEMPLATE_ARGUMENTS.search(bare):
            bare = TEMPLATE_ARGUMENTS.sub("", bare)
        other = OTHER.match(bare)
        # Skip definitions of members, which are qualified, and uses of macros, which are in
        # capitals.
        if other and not other[1] and not other[2].isupper() and line.split()[0] not in NO_NAMES:
            self.own.add(other[2])


class Reader:
    def __init__(self, root):
        self.root = root
        self.sources = {}
        self.seen = {}

    def source(self, path):
        if path not in self.sources:
            self.sources[path] = Source(path)
        return self.sources[path]

    def headers(self, path, found):
        """Adds the project's headers that this file includes, directly or not."""
        for name in self.source(path).includes:
            for folder in (self.root, os.path.dirname(path)):
                header = os.path.join(folder, name)
                if os.path.isfile(header):
                    if header not in found:
                        found.add(header)
                        self.headers(header, found)
                    break

    def names_seen(self, path):
        if path not in self.seen:
            headers = set()
            self.headers(path, headers)
            names = set(self.source(path).seen)
            for header in headers:
                names |= self.source(header).own | self.source(header).seen
            self.seen[path] = names
        return self.seen[path]

    def collide(self, a, b):
        first, second = self.source(a), self.source(b)
        if first.directives != second.directives:
            return True
        both = first.own & second.own
        if any(first.aliases.get(name, name) != second.aliases.get(name) for name in both):
            return True
        seen_a, seen_b = self.names_seen(a), self.names_seen(b)
        return bool((first.own - both) & (seen_b - seen_a) or (second.own - both) & (seen_a - seen_b))


def grouped(reader, sources, most_lines):
    groups = []
    for path in sources:
        if reader.source(path).alone:
            continue
        for group in groups:
            lines = sum(reader.source(member).lines for member in group)
            if lines + reader.source(path).lines <= most_lines and not any(reader.collide(path, member) for member in group):
                group.append(path)
                break
        else:
            groups.append([path])
    return [group for group in groups if len(group) > 1]


def main():
    reader = Reader(sys.argv[1])
    most_lines = int(sys.argv[2])
    targets = {}
    for line in sys.stdin:
        target, source = line.rstrip("\n").split(";")
        targets.setdefault(target, []).append(source)
    every = [source for sources in targets.values() for source in sources]
    for target, sources in targets.items():
        sources = [source for source in sources if every.count(source) == 1]  # a source may be in only one group
        for number, group in enumerate(grouped(reader, sources, most_lines)):
            for source in group:
                print(f"{target};group{number};{source}")


main()
