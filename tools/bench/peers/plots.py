"""Draws the plots. Rates are bars, with a panel for each kind of rate. Bytes stored after each
generation are curves."""
import itertools
import math
from html import escape

import svg
from peers.summary import MB

_COLOURS = {"siltfs": "#1b6ca8", "limited": "#7fb2dc", "variant": "#4a8fc4", "scale": "#c9c9c9", "peer": "#8a8f98", "passthrough": "#c97b12"}
_CURVES = ["#b5322c", "#2a9d5c", "#c97b12", "#7a3ea1", "#5c6b73", "#8c564b", "#d16ba5"]
_NAMES, _BARS, _GAP, _ROW, _TOP = 190, 230, 80, 24, 50


def _bars(title, panels, record):
    """Draws panels (heading, {system: figure}) side by side, with a row for each system. Thin lines
    show the ranges."""
    names = list(dict.fromkeys(name for _, figures in panels for name in figures))
    width = _NAMES + len(panels) * (_BARS + _GAP)
    height = _TOP + _ROW * len(names) + 20
    parts = [svg.text(width / 2, 18, escape(title), 14)]
    for row, name in enumerate(names):
        parts.append(svg.text(_NAMES - 8, _TOP + _ROW * row + 15, escape(name), anchor="end"))
    for column, (heading, figures) in enumerate(panels):
        left = _NAMES + column * (_BARS + _GAP)
        most = max(figure["most"] for figure in figures.values())
        parts.append(svg.text(left, 40, escape(heading), anchor="start"))
        for name, figure in figures.items():
            top = _TOP + _ROW * names.index(name)
            end = [left + figure[key] / most * _BARS for key in ("least", "median", "most")]
            parts.append(svg.bar(left, top + 2, end[1] - left, _ROW - 6, _COLOURS[record["systems"][name]["role"]]))
            parts.append(svg.line(end[0], top + _ROW / 2 - 1, end[2], top + _ROW / 2 - 1, "#222"))
            digits = 0 if figure["median"] >= 100 else 1
            parts.append(svg.text(end[2] + 6, top + 15, f"{figure['median']:,.{digits}f}", 11, "start"))
    return svg.document(width, height, parts)


def _stored(title, systems, record):
    """Draws the stored bytes after each generation. The axis begins at zero."""
    left, right, top, bottom, width = 70, 560, 40, 330, 800
    most = max(max(stored["stored_by_generation"]) for stored in systems.values()) / MB * 1.05
    count = max(len(stored["stored_by_generation"]) for stored in systems.values())
    step = 10 ** math.floor(math.log10(most))
    step = next(part for part in (step / 5, step / 2, step) if most / part <= 10)

    def place(generation, stored):
        return (left + (generation + 0.5) / count * (right - left), bottom - stored / most * (bottom - top))

    parts = [svg.text((left + right) / 2, 20, escape(title), 14)]
    for i in range(math.floor(most / step) + 1):
        _, y = place(0, i * step)
        parts += [svg.line(left, y, right, y), svg.text(left - 8, y + 4, f"{i * step:,.4g}", anchor="end")]
    parts += [svg.text(place(i, 0)[0], bottom + 18, f"gen{i}") for i in range(count)]
    curves = itertools.cycle(_CURVES)
    ends = []
    for name, figures in systems.items():
        role = record["systems"][name]["role"]
        colour = _COLOURS[role] if role in ("siltfs", "limited") else next(curves)
        points = [place(i, stored / MB) for i, stored in enumerate(figures["stored_by_generation"])]
        parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" '
                     f'stroke="{colour}" stroke-width="{3 if name == "siltfs" else 1.5}"/>')
        ends.append((points[-1][1], name, colour))
    below = top - 15.0
    for y, name, colour in sorted(ends):  # Labels must not overlap.
        below = max(below + 15, y)
        parts.append(svg.text(right + 6, below + 4, escape(name), 12, "start", colour))
    return svg.document(width, max(bottom, below) + 35, parts)


def draw(record):
    """Returns all plots as {suffix of the file's name: SVG}."""
    plots = {}
    for workload, summary in record["summary"].items():
        systems = summary["systems"]
        if workload in ("tar", "tree"):
            panels = [(heading, {name: figures[key] for name, figures in systems.items() if key in figures})
                      for key, heading in (("first", "first backup, MB/s"), ("next", "next backups, MB/s"),
                                           ("restore", "cold restore, MB/s"), ("ratio", "bytes in : bytes stored"))]
            plots[f"{workload}-throughput"] = _bars(f"Generations as {workload}", [p for p in panels if p[1]], record)
            plots[f"{workload}-stored"] = _stored(f"MB stored after each generation, as {workload}", systems, record)
        else:
            scale = MB if workload == "fio" else 1
            unit = "MB/s" if workload == "fio" else "files/s"
            steps = list(next(iter(systems.values())))
            panels = [(f"{step}, {unit}", {name: {key: figures[step][key] / scale for key in
                                                  ("median", "least", "most")}
                                           for name, figures in systems.items()}) for step in steps]
            for half, group in enumerate([panels[:4], panels[4:]]):
                if group:
                    suffix = f"-{half + 1}" if len(panels) > 4 else ""
                    plots[workload + suffix] = _bars({"fio": "fio through the mount", "metadata": "Small files"}
                                                     [workload], group, record)
    return plots
