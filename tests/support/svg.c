/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/svg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

int asym_svg_check(const char *name, unsigned busy)
{
    char command[2048];
    snprintf(
        command, sizeof command,
        "python3 -c 'import sys, xml.dom.minidom as m\n"
        "d = m.parse(sys.argv[1]).documentElement\n"
        "w, h = (float(d.getAttribute(k)) for k in (\"width\", \"height\"))\n"
        "def box(t):\n"
        "    n, x = 9 * len(t.firstChild.data), float(t.getAttribute(\"x\"))\n"
        "    left = {\"start\": x, \"middle\": x - n / 2, \"end\": x - n}[t.getAttribute(\"text-anchor\")]\n"
        "    return left, float(t.getAttribute(\"y\")), n\n"
        "boxes = [box(t) for t in d.getElementsByTagName(\"text\") if not t.getAttribute(\"class\")]\n"
        "assert all(0 <= x and 0 < y < h and x + n <= w + 40 for x, y, n in boxes), boxes\n"
        "apart = lambda a, b: abs(a[1] - b[1]) >= 12 or a[0] + a[2] * 0.8 <= b[0] or b[0] + b[2] * 0.8 <= a[0]\n"
        "assert all(apart(a, b) for i, a in enumerate(boxes) for b in boxes[:i]), boxes\n"
        "r = [float(e.getAttribute(\"width\")) for e in d.getElementsByTagName(\"rect\") if e.getAttribute(\"fill\")]\n"
        "assert sum(r) >= float(sys.argv[2]), r\n"
        "' '%s' %u",
        name, busy);
    return system(command);
}

char *asym_svg_text(const char *name)
{
    char *text = calloc(1, 1 << 20);
    FILE *in = fopen(name, "r");
    assert_non_null(text);
    assert_non_null(in);
    assert_true(fread(text, 1, (1 << 20) - 1, in) > 0);
    fclose(in);
    return text;
}
