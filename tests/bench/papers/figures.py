# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws the figures of the docs as plain SVG, from the same numbers as the tables."""

STYLE = 'font-family="sans-serif" font-size="12" fill="#222"'


def text(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {STYLE} {extra}>{words}</text>'


def svg(width, height, title, parts):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">',
                      f"<title>{title}</title>", f'<rect width="{width}" height="{height}" fill="#fff"/>', *parts,
                      "</svg>", ""])


def speedups(series):
    """Draws the speedup of a serial program beside a parallel one, by CPUs: mean and range of each series."""
    left, top, step, height = 60, 40, 70, 220
    ns = sorted({n for _, points in series for n in points})

    def at(n, y):
        return left + step * (ns.index(n) + 0.5), top + height * (1 - (y - 0.4) / 0.7)

    parts = [text(left + step * len(ns) / 2, 22, "Speedup of a serial program beside a parallel one (Morad 2008, Figures 6, 7)")]
    for tick in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        y = at(ns[0], tick)[1]
        parts += [f'<path d="M{left} {y:.1f}h{step * len(ns)}" stroke="#ddd"/>', text(left - 8, y + 4, f"{tick:.1f}", "end")]
    for k, (name, points) in enumerate(series):
        colour, shift = ("#c0392b", "#2471a3", "#7d7d7d")[k % 3], 8 * (k - 1)
        line = []
        for n in ns:
            if n not in points:
                continue
            mean, least, most = points[n]
            x, y = at(n, mean)
            line.append(f"{x + shift:.1f},{y:.1f}")
            parts.append(f'<path d="M{x + shift:.1f} {at(n, least)[1]:.1f}V{at(n, most)[1]:.1f}" stroke="{colour}"/>')
            parts.append(f'<circle cx="{x + shift:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        parts.append(f'<polyline points="{" ".join(line)}" fill="none" stroke="{colour}" stroke-dasharray="4 3"/>')
        parts.append(text(left + 10 + 190 * k, top + height + 50, name, "start", f'style="fill:{colour}"'))
    for n in ns:
        parts.append(text(at(n, 0.4)[0], top + height + 20, f"n = {n}"))
    return svg(left + step * len(ns) + 30, top + height + 70, "Morad 2008, Figures 6 and 7", parts)


def heat(labels, maps):
    """Draws gains in per cent by pair of labels, one triangle a map."""
    cell, left, top = 40, 60, 60
    width = left + cell * len(labels) + 30
    parts = []
    for k, (name, gains) in enumerate(maps):
        x0 = k * width + left
        parts.append(text(x0 + cell * len(labels) / 2, 22, name))
        for i, label in enumerate(labels):
            parts += [text(x0 - 6, top + cell * (i + 0.6), label, "end"), text(x0 + cell * (i + 0.5), top - 8, label)]
            for j in range(i + 1):
                gain = gains[i, j]
                depth = int(255 - 190 * max(0, min(gain, 30)) / 30)
                parts.append(f'<rect x="{x0 + cell * j}" y="{top + cell * i}" width="{cell - 2}" height="{cell - 2}" '
                             f'fill="rgb({depth},{min(255, depth + 40)},255)"/>')
                parts.append(text(x0 + cell * (j + 0.48), top + cell * (i + 0.58), f"{gain:+.0f}"))
    return svg(width * len(maps), top + cell * len(labels) + 20, "Morad 2008, Table 4", parts)
