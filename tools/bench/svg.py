"""SVG elements for figures."""


def text(x, y, words, size=12, anchor="middle", colour="#222", extra=""):
    return (f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{colour}"{" " if extra else ""}{extra}>{words}</text>')


def line(x1, y1, x2, y2, colour="#ddd"):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def bar(x, y, width, height, colour, opacity=1):
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:g}" height="{height:.1f}" fill="{colour}" '
            f'opacity="{opacity}"/>')


def document(width, height, parts):
    """Returns the text of an SVG file with a white background."""
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                      'font-family="sans-serif">', f'<rect width="{width}" height="{height}" fill="white"/>',
                      *parts, "</svg>"]) + "\n"
