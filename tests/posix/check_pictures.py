#!/usr/bin/env python3
"""Checks the screenshots of a page with plots.

usage: check_pictures.py [--parts N] LIGHT DARK PHONE

The light page is mostly bright and the dark one mostly dark. All have coloured shapes in each of N
parts of their length (default: 10). The narrow page is no wider than the screen: nothing is drawn at its right edge.
"""

import argparse
import struct
import zlib


def read_png(path):
    """Returns the width and the rows of an 8-bit RGB or RGBA picture without interlacing."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", f"{path} is no PNG"
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    assert depth == 8 and colour in (2, 6) and interlaced == 0, f"{path} has another format"
    step = 3 if colour == 2 else 4
    raw, stride = zlib.decompress(packed), width * step
    rows, previous = [], bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        method, row = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        if method == 1:
            for i in range(step, stride):
                row[i] = (row[i] + row[i - step]) & 255
        elif method == 2:
            for i in range(stride):
                row[i] = (row[i] + previous[i]) & 255
        elif method == 3:
            for i in range(stride):
                row[i] = (row[i] + ((row[i - step] if i >= step else 0) + previous[i]) // 2) & 255
        elif method == 4:
            for i in range(stride):
                a, b, c = (row[i - step] if i >= step else 0), previous[i], (previous[i - step] if i >= step else 0)
                p = a + b - c
                nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))
                row[i] = (row[i] + nearest[2]) & 255
        rows.append(row)
        previous = row
    return width, step, rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", type=int, default=10)
    parser.add_argument("pictures", nargs=3)
    arguments = parser.parse_args()
    for path, kind in zip(arguments.pictures, ("light", "dark", "phone")):
        width, step, rows = read_png(path)
        assert width == (390 if kind == "phone" else 1280), f"{path} is {width} wide"
        # The page ends before the picture does, and its margin has the colour of the picture's end.
        margin = bytes(rows[-1][:step])
        used = [y for y, row in enumerate(rows) if bytes(row) != margin * width]
        assert used and used[-1] < len(rows) - 1, f"{path} is cut off"
        assert used[-1] > 2000, f"{path} is nearly empty"
        bright = sum(margin[:3]) > 3 * 128
        assert bright == (kind != "dark"), f"{path} has the wrong background"
        length, parts = used[-1] + 1, arguments.parts
        for part in range(parts):
            found = False
            for y in range(part * length // parts, (part + 1) * length // parts, 2):
                row = rows[y]
                found = any(max(row[i : i + 3]) - min(row[i : i + 3]) > 80 for i in range(0, width * step, step))
                if found:
                    break
            assert found, f"{path} has no colour in its part {part + 1} of {parts}"
        if kind == "phone":
            for y, row in enumerate(rows):
                assert bytes(row[-4 * step :]) == margin * 4, f"{path} reaches the right edge at {y}"
        print(f"{path}: {length} rows")


if __name__ == "__main__":
    main()
