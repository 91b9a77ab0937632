#!/usr/bin/env python3
"""Draws the panels of a Grafana dashboard as a page, with the data of a Prometheus.

usage: dashboard_page.py DASHBOARD ADDRESS PAGE [--seconds N] [--step N] [--rename OLD NEW]...

This is not Grafana. The page has the layout, the titles, the units, the legends, the mappings and the
thresholds of the dashboard, so that these can be judged by eye and checked. The panels are of the
types "stat" and "timeseries". Values are written as Grafana writes them for the same unit. Fails if
a panel is incomplete: no description, no data, an unknown unit, or two lines of the same name.
"""

import argparse
import html
import json
import math
import time
import urllib.parse
import urllib.request

# The first colours of Grafana's palette, in its order.
PALETTE = ["#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a"]
NAMED = {"green": "#299c46", "yellow": "#c98a00", "red": "#e02f44"}
STYLE = """
:root { color-scheme: light dark; --page: #f4f5f5; --panel: #fff; --line: #d8d9da; --text: #24292e; --faint: #5f656b; }
@media (prefers-color-scheme: dark) {
  :root { --page: #111217; --panel: #181b1f; --line: #34373d; --text: #d8d9da; --faint: #9fa5ad; }
}
body { margin: 0; padding: 16px; background: var(--page); color: var(--text); font: 14px/1.3 sans-serif; }
h1 { font-size: 20px; margin: 0 0 4px; } .note { color: var(--faint); margin: 0 0 12px; font-size: 12px; }
main { display: grid; grid-template-columns: repeat(24, 1fr); grid-auto-rows: 30px; gap: 8px; }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 2px; padding: 8px; overflow: hidden;
  display: flex; flex-direction: column; }
h2 { font-size: 14px; font-weight: 500; margin: 0 0 4px; }
.stats { display: flex; flex: 1; gap: 12px; align-items: center; justify-content: space-around; text-align: center; }
.stats b { display: block; font-size: 30px; font-weight: 500; line-height: 1.2; }
.stats span, .legend { color: var(--faint); font-size: 12px; overflow-wrap: anywhere; }
.legend { margin-top: auto; } .legend span { margin-right: 12px; white-space: nowrap; }
.legend i { display: inline-block; width: 14px; height: 3px; margin-right: 5px; vertical-align: middle; }
svg { display: block; width: 100%; flex: 1; min-height: 0; } text { fill: var(--faint); font-size: 12px; }
.narrow { display: none; }
@media (max-width: 768px) {
  main { display: block; } section { margin-bottom: 8px; height: auto; } .wide { display: none; } .narrow { display: block; }
}
"""


def digits(value, decimals):
    """A number with three significant digits, or with this number of decimals."""
    if decimals is None:
        decimals = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
        text = f"{value:.{min(decimals, 6)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.{decimals}f}"


def scaled(value, base, names, decimals):
    step = 0
    while abs(value) >= base and step + 1 < len(names):
        value, step = value / base, step + 1
    return f"{digits(value, decimals)} {names[step]}".strip()


def seconds_text(value, decimals):
    for limit, factor, name in ((60, 1, "s"), (3600, 60, "mins"), (86400, 3600, "hours"), (604800, 86400, "days"), (31536000, 604800, "weeks")):
        if abs(value) < limit:
            return f"{digits(value / factor, decimals)} {name}"
    return f"{digits(value / 31536000, decimals)} years"


IEC = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
UNITS = {
    "none": digits,
    "short": lambda value, decimals: scaled(value, 1000, ["", "K", "Mil", "Bil", "Tri"], decimals),
    "bytes": lambda value, decimals: scaled(value, 1024, IEC, decimals),
    "binBps": lambda value, decimals: scaled(value, 1024, [f"{name}/s" for name in IEC], decimals),
    "percentunit": lambda value, decimals: digits(value * 100, decimals) + "%",
    "s": seconds_text,
}


class Server:
    def __init__(self, address):
        self.address = address

    def ask(self, path, **words):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            document = json.load(answer)
        assert document["status"] == "success", document
        return document["data"]["result"]


def expression_of(target, step):
    return target["expr"].replace("$store", ".*").replace("$__rate_interval", f"{max(4, 4 * step)}s")


def name_of(target, metric):
    text = target["legendFormat"]
    for label, value in metric.items():
        text = text.replace("{{" + label + "}}", value)
    assert "{{" not in text, f"the legend {text} has a label that the metric lacks"
    return text


def threshold_colour(defaults, value):
    colour = "green"
    for step in defaults.get("thresholds", {"steps": []})["steps"]:
        if step["value"] is None or value >= step["value"]:
            colour = step["color"]
    return colour


def draw_stat(panel, server, step):
    defaults = panel["fieldConfig"]["defaults"]
    mapped = {key: entry for mapping in defaults.get("mappings", []) for key, entry in mapping["options"].items()}
    cells = ""
    for target in panel["targets"]:
        for series in server.ask("query", query=expression_of(target, step)):
            value = float(series["value"][1])
            key = digits(value, None)
            text = UNITS[defaults["unit"]](value, defaults.get("decimals"))
            colour = threshold_colour(defaults, value)
            if key in mapped:
                text, colour = mapped[key]["text"], mapped[key]["color"]
            cells += f'<div><b style="color:{NAMED[colour]}">{html.escape(text)}</b><span>{html.escape(name_of(target, series["metric"]))}</span></div>'
    assert cells, f"{panel['title']} has no data"
    return f'<div class="stats">{cells}</div>'


def nice_step(span, most, binary):
    """A round distance of at most `most` ticks over the span."""
    unit = 1024 ** math.floor(math.log(span, 1024)) if binary and span >= 1024 else 1
    rough = span / unit / most
    power = 10 ** math.floor(math.log10(rough))
    return unit * next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)


def draw_plot(lines, defaults, begin, end, width, height):
    values = [value for _, points in lines for _, value in points]
    low = defaults.get("min", min(values))
    high = defaults.get("max", max(values))
    if high <= low:
        high = low + 1
    unit = defaults["unit"]
    step = nice_step(high - low, 5, unit in ("bytes", "binBps"))
    if defaults.get("decimals") == 0:
        step = max(step, 1)
    low = math.floor(low / step) * step
    high = math.ceil(high / step - 1e-9) * step
    left, right, top, bottom = 78, 10, 8, 22

    def x(at):
        return left + (at - begin) / (end - begin) * (width - left - right)

    def y(value):
        return top + (high - value) / (high - low) * (height - top - bottom)

    drawn, labels = "", []
    for tick in range(round((high - low) / step) + 1):
        value = low + tick * step
        labels.append(UNITS[unit](value, defaults.get("decimals")))
        drawn += f'<line x1="{left}" x2="{width - right}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="var(--line)"/>'
        drawn += f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{labels[-1]}</text>'
    assert len(set(labels)) == len(labels), f"the scale has equal labels: {labels}"
    for part in range(3):
        at = begin + (end - begin) * (part + 0.5) / 3
        drawn += f'<text x="{x(at):.1f}" y="{height - 5}" text-anchor="middle">{time.strftime("%H:%M:%S", time.gmtime(at))}</text>'
    if defaults.get("custom", {}).get("thresholdsStyle", {}).get("mode") == "dashed":
        for limit in defaults["thresholds"]["steps"]:
            if limit["value"] is not None:
                drawn += f'<line x1="{left}" x2="{width - right}" y1="{y(limit["value"]):.1f}" y2="{y(limit["value"]):.1f}" stroke="{NAMED[limit["color"]]}" stroke-dasharray="6 4"/>'
    for index, (_, points) in enumerate(lines):
        path, before = "", None
        for at, value in points:
            # A gap in the data is a gap in the line.
            path += f'{"L" if before is not None and at - before <= 2.5 * (end - begin) / 60 else "M"}{x(at):.1f} {y(value):.1f}'
            before = at
        drawn += f'<path d="{path}" fill="none" stroke="{PALETTE[index % len(PALETTE)]}" stroke-width="2" stroke-linecap="round"/>'
    return drawn


def draw_time_series(panel, server, begin, end, step):
    defaults = panel["fieldConfig"]["defaults"]
    lines = []
    for target in panel["targets"]:
        for series in server.ask("query_range", query=expression_of(target, step), start=begin, end=end, step=step):
            points = [(at, float(value)) for at, value in series["values"] if value not in ("NaN", "+Inf", "-Inf")]
            if points:
                lines.append((name_of(target, series["metric"]), points))
    assert lines, f"{panel['title']} has no data"
    names = [name for name, _ in lines]
    assert len(set(names)) == len(names), f"{panel['title']} has lines of the same name: {names}"
    body = ""
    for layout, width in (("wide", 600), ("narrow", 340)):
        height = 30 * panel["gridPos"]["h"] + 8 * (panel["gridPos"]["h"] - 1) - 66
        body += f'<svg class="{layout}" viewBox="0 0 {width} {height}" preserveAspectRatio="xMidYMid meet">{draw_plot(lines, defaults, begin, end, width, height)}</svg>'
    legend = "".join(f'<span><i style="background:{PALETTE[index % len(PALETTE)]}"></i>{html.escape(name)}</span> ' for index, name in enumerate(names))
    return f'{body}<div class="legend">{legend}</div>'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dashboard")
    parser.add_argument("address")
    parser.add_argument("page")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--rename", nargs=2, action="append", default=[])
    arguments = parser.parse_args()
    with open(arguments.dashboard, encoding="utf-8") as file:
        dashboard = json.load(file)
    server, end = Server(arguments.address), time.time()
    begin = end - arguments.seconds
    places, body = [], ""
    for panel in dashboard["panels"]:
        title, place = panel["title"], panel["gridPos"]
        assert title and panel["description"], f"{title} has no description"
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, f"{title} has an unknown unit"
        if panel["type"] == "stat":
            content = draw_stat(panel, server, arguments.step)
        else:
            assert panel["type"] == "timeseries", f"{title} has an unknown type"
            content = draw_time_series(panel, server, begin, end, arguments.step)
        for other, name in places:
            apart = place["x"] + place["w"] <= other["x"] or other["x"] + other["w"] <= place["x"]
            assert apart or place["y"] + place["h"] <= other["y"] or other["y"] + other["h"] <= place["y"], f"{title} covers {name}"
        assert place["x"] + place["w"] <= 24, f"{title} is too wide"
        places.append((place, title))
        area = f'grid-area:{place["y"] + 1}/{place["x"] + 1}/span {place["h"]}/span {place["w"]}'
        body += f'<section style="{area}" title="{html.escape(panel["description"])}"><h2>{html.escape(title)}</h2>{content}</section>\n'
    for old, new in arguments.rename:
        body = body.replace(old, new)
    with open(arguments.page, "w", encoding="utf-8") as file:
        file.write(
            f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{dashboard["title"]}</title>'
            f'<style>{STYLE}</style><h1>{dashboard["title"]}</h1><p class="note">The panels of siltfs-dashboard.json, with data of a Prometheus. '
            f"This page is a drawing of a test, not Grafana.</p><main>\n{body}</main></html>\n"
        )
    print(f"{len(places)} panels")


if __name__ == "__main__":
    main()
