#!/usr/bin/env python3
"""Checks that the page of `siltfs report` shows the figures of a store.

usage: check_report.py PAGE STAT INDEX [--scrubs N]

PAGE is the page, as the command wrote it or as a browser has read it. STAT and INDEX are the outputs
of `siltfs stat --json` and `siltfs index stat --json` for the same state of the store, which must
have no snapshots. Each plot must be there in both layouts, with a title, a description and data, and
the data must add up to the figures of the store.
"""

import argparse
import html.parser
import json
import re

PLOTS = ["space", "history", "ratio", "chunk-sizes", "sharing", "segments", "index", "memory", "memory-history", "scrubs"]

CHARACTER = 6  # about how wide a character of a label is


class Page(html.parser.HTMLParser):
    """Collects the plots: for each one the shapes with data, the title and the description."""

    def __init__(self):
        super().__init__()
        self.plots, self.tags, self.attributes = {}, set(), set()
        self.plot = self.into = None
        self.in_word = False

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.add(tag)
        self.attributes.update(attributes)
        if tag == "svg":
            assert attributes.get("role") == "img", "a plot has no role"
            labels = attributes["aria-labelledby"].split()
            layout = "wide" if labels[0].endswith("-wide-t") else "narrow"
            self.plot = {"labels": labels, "texts": {}, "shapes": [], "width": float(attributes["viewbox"].split()[2]), "words": []}
            key = (attributes["data-plot"], layout)
            assert key not in self.plots, f"{key} is there twice"
            self.plots[key] = self.plot
        elif self.plot is not None and tag == "text":
            self.plot["words"].append([float(attributes["x"]), attributes["text-anchor"], ""])
            self.in_word = True
        elif self.plot is not None and attributes.get("id") in self.plot["labels"]:
            self.into = attributes["id"]
        elif self.plot is not None and any(name.startswith("data-") for name in attributes):
            self.plot["shapes"].append(attributes)

    def handle_endtag(self, tag):
        if tag == "svg":
            self.plot = None
        self.into, self.in_word = None, False

    def handle_data(self, data):
        if self.in_word:
            self.plot["words"][-1][2] += data
        if self.plot is not None and self.into:
            self.plot["texts"][self.into] = self.plot["texts"].get(self.into, "") + data


def read(path):
    page = Page()
    with open(path, encoding="utf-8") as file:
        content = file.read()
    page.feed(content)
    return page, content


def close(a, b):
    return abs(a - b) <= 1e-4 * max(abs(a), abs(b), 1e-9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("stat")
    parser.add_argument("index")
    parser.add_argument("--scrubs", type=int, default=0)
    arguments = parser.parse_args()
    page, content = read(arguments.page)
    with open(arguments.stat, encoding="utf-8") as file:
        stat = json.load(file)
    with open(arguments.index, encoding="utf-8") as file:
        index = json.load(file)

    assert not page.tags & {"script", "link", "img", "iframe", "object", "embed"}, f"the page has {page.tags}"
    assert not [name for name in page.attributes if name.startswith("on") or name in ("src", "href")], "the page loads or runs something"
    assert not re.search(r"(?:https?:)?//|url\(|@import", content.replace("<!DOCTYPE html>", "")), "the page names another place"
    assert "NaN" not in content and not re.search(r'"-?(?:nan|inf)', content), "a figure is no number"

    names = {name for name, _ in page.plots}
    assert names == set(PLOTS), f"the plots are {sorted(names)}"
    for (name, layout), plot in page.plots.items():
        where = f"{name} ({layout})"
        for x, anchor, word in plot["words"]:
            width = CHARACTER * len(word)
            begin = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
            assert begin >= -4 and begin + width <= plot["width"] + 4, f"{where}: \"{word}\" is outside of the plot"
        assert len(plot["texts"]) == 2 and all(text.strip() for text in plot["texts"].values()), f"{where} has no title or description"

    disk = stat["stored_bytes"] + stat["metadata_bytes"] + stat["index_bytes"]
    for layout in ("wide", "narrow"):
        plots = {name: plot["shapes"] for (name, of), plot in page.plots.items() if of == layout}
        values = {name: [float(shape["data-value"]) for shape in shapes if shape.get("data-value")] for name, shapes in plots.items()}
        for name in PLOTS:
            assert values[name] or name == "scrubs", f"{name} ({layout}) has no data"
        expected = {
            "the chunks by length": (sum(values["chunk-sizes"]), stat["chunks_unique"]),
            "the chunks by references": (sum(values["sharing"]), stat["chunks_unique"]),
            "the entries of the index": (sum(values["index"]), index["entries"]),
            "the memory of the index": (sum(float(s["data-memory"]) for s in plots["index"] if "data-memory" in s), sum(kind["memory_bytes"] for kind in index["kinds"])),
            "the flash of the index": (sum(float(s["data-flash"]) for s in plots["index"] if "data-flash" in s), sum(kind["flash_bytes"] for kind in index["kinds"])),
            "memory for each entry": (values["memory"][-1], index["memory_bytes_per_entry"]),
            "the files": (values["space"][0], stat["logical_bytes"]),
            "after deduplication": (values["space"][1], stat["unique_bytes"]),
            "after compression": (values["space"][2], stat["stored_bytes"] - stat["dead_bytes"]),
            "on disk": (values["space"][3], disk),
            "the last ratio": (values["ratio"][-1], stat["logical_bytes"] / disk),
            "the known damage": (values["scrubs"][-1], stat["damaged_chunks"]),
            "the scrubs": (len([s for s in plots["scrubs"] if "data-damage" in s]), arguments.scrubs),
        }
        samples = len(values["history"]) // 3
        for at, key in enumerate(("logical_bytes", "unique_bytes")):
            expected[f"the last {key}"] = (values["history"][(at + 1) * samples - 1], stat[key])
        expected["the last sample on disk"] = (values["history"][-1], disk)
        for what, (shown, real) in expected.items():
            # The statistics also count chunks of open segments that were replaced before they were
            # referred to: a file's last chunk, if the daemon has cut it before the program wrote on.
            replaced = real - shown if what.startswith("the chunks by") else 0
            assert close(shown, real) or 0 < replaced <= 3, f"{what} ({layout}): the page shows {shown}, the store has {real}"
        assert samples >= 2, "the history is not drawn"
        assert all(0 <= share <= 1 for share in values["segments"]), "a segment's share is no share"
        assert any(share > 0 for share in values["segments"]), "no segment is in use"
    references = int(re.search(r"References</dt><dd>([\d,]+)<", content).group(1).replace(",", ""))
    assert references == stat["chunks_logical"], f"{references} references, not {stat['chunks_logical']}"
    print(f"{len(page.plots)} plots, {len(values['segments'])} segments, {samples} samples")


if __name__ == "__main__":
    main()
