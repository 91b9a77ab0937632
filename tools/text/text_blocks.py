"""Finds the blocks of English text in the repository: comments of C++ sources, comments of scripts
and CMake files, and paragraphs of documents."""

import os
import re

FOLDERS = ("store", "chunker", "index", "fs", "tools", "tests", "docs", "cmake")
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
SKIPPED = ("tests/fuzz/corpus", "golden")
CPP_TOKEN = re.compile(
    r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*(?:.|\n)*?\*/'
)


class Block:
    """One comment or paragraph. `line` counts from 1."""

    def __init__(self, path, line, text):
        self.path = path
        self.line = line
        self.text = text


def files(root):
    """Yields all paths with text, relative to `root`, in a stable order."""
    found = [name for name in DOCUMENTS if os.path.exists(os.path.join(root, name))]
    for folder in FOLDERS:
        for directory, names, leaves in os.walk(os.path.join(root, folder)):
            names.sort()
            relative = os.path.relpath(directory, root)
            if any(part in relative for part in SKIPPED):
                names.clear()
                continue
            found += [os.path.join(relative, leaf) for leaf in sorted(leaves)]
    return [path for path in found if kind_of(root, path)]


def kind_of(root, path):
    """'c++', 'script', 'document' or None."""
    name = os.path.basename(path)
    if name.endswith((".cc", ".h")):
        return "c++"
    if name.endswith(".md"):
        return "document"
    if name.endswith((".sh", ".py", ".cmake")) or name == "CMakeLists.txt":
        return "script"
    if "." not in name and path.startswith("tools/"):
        with open(os.path.join(root, path), "rb") as file:
            return "script" if file.read(2) == b"#!" else None
    return None


def blocks(root, path):
    """All blocks of one file."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    kind = kind_of(root, path)
    if kind == "document":
        return paragraphs(path, text)
    lines = cpp_comments(text) if kind == "c++" else script_comments(text)
    joined = []
    for number, content, alone in lines:
        follows = joined and alone and joined[-1][2] and joined[-1][1] == number - 1
        if follows:
            joined[-1][1] = number
            joined[-1][3].append(content)
        else:
            joined.append([number, number, alone, [content]])
    return [Block(path, first, "\n".join(content)) for first, _, _, content in joined]


def cpp_comments(text):
    """Yields the line, the content, and whether nothing precedes it on its line, of each // comment
    and of each whole /* */ comment."""
    for match in CPP_TOKEN.finditer(text):
        token = match.group(0)
        if not token.startswith(("//", "/*")):
            continue
        begin = match.start()
        alone = not text[text.rfind("\n", 0, begin) + 1 : begin].strip()
        content = token[2:] if token.startswith("//") else token[2:-2]
        yield text.count("\n", 0, begin) + 1, content.strip(), alone


def script_comments(text):
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped.startswith("#") and not stripped.startswith("#!"):
            yield number, stripped.lstrip("# "), True


def paragraphs(path, text):
    """Returns paragraphs, list items and quotes, but no headings, tables and code."""
    found, current, first, fenced = [], [], 0, False

    def end():
        if current:
            found.append(Block(path, first, "\n".join(current)))
            current.clear()

    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped.startswith("```"):
            fenced = not fenced
            end()
            continue
        code = fenced or (line.startswith("    ") and not current)
        if not stripped or code or stripped.startswith(("#", "|")):
            end()
            continue
        if re.match(r"([-*]|\d+\.) ", stripped):
            end()
        if not current:
            first = number
        current.append(stripped)
    end()
    return found
