/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/macro.h"
#include "base/text.h"
#include "report/json.h"

static const struct {
    const char *name, *style;
} levels[] = {
    [ASYM_FACT_GOOD] = {"good", NULL},
    [ASYM_FACT_NOTE] = {"note", "33"},
    [ASYM_FACT_LACK] = {"lack", "31"},
};

void asym_check_add(struct asym_check *check, const char *name, enum asym_fact_level level, const char *remedy,
                    const char *format, ...)
{
    struct asym_fact fact = {.level = level};
    va_list args;
    va_start(args, format);
    vsnprintf(fact.text, sizeof fact.text, format, args);
    va_end(args);
    snprintf(fact.remedy, sizeof fact.remedy, "%s", remedy);
    asym_check_add_fact(check, name, &fact);
}

int asym_check_add_fact(void *ctx, const char *name, const struct asym_fact *fact)
{
    struct asym_check *check = ctx;
    if (asym_grow(&check->lines, check->n, &check->capacity, sizeof *check->lines) < 0)
        return check->error = -ENOMEM;
    check->lines[check->n++] = (struct asym_check_line){.name = name, .fact = *fact};
    return 0;
}

static void print_line(const struct asym_check_line *line, size_t name_width, const struct asym_terminal *terminal)
{
    FILE *out = terminal->out;
    const struct asym_fact *f = &line->fact;
    char text[4 * sizeof f->text], remedy[4 * sizeof f->remedy];
    size_t at = 6 + name_width + 2;
    asym_columns_cell(out, levels[f->level].name, 6, terminal->colour ? levels[f->level].style : NULL);
    asym_columns_cell(out, line->name, name_width + 2, NULL);
    asym_columns_line(terminal, asym_text_show(f->text, text, sizeof text), at, at);
    if (*f->remedy)
        asym_columns_say(terminal, at, at + 3, "-> %s", asym_text_show(f->remedy, remedy, sizeof remedy));
}

int asym_check_text(const struct asym_check *check, const struct asym_terminal *terminal)
{
    FILE *out = terminal->out;
    size_t width = 0;
    for (size_t i = 0; i < check->n; i++)
        width = asym_columns_wider(width, check->lines[i].name);
    if (*check->verdict) {
        char verdict[4 * sizeof check->verdict];
        asym_columns_wrap(terminal, asym_text_show(check->verdict, verdict, sizeof verdict), 0, 0);
        fputs("\n\n", out);
    }
    for (size_t i = 0; i < check->n; i++)
        print_line(&check->lines[i], width, terminal);
    return ferror(out) ? -EIO : 0;
}

int asym_check_json(const struct asym_check *check, FILE *out)
{
    json_t *lines = json_array();
    for (size_t i = 0; i < check->n; i++) {
        const struct asym_fact *f = &check->lines[i].fact;
        asym_json_append(&lines,
                         json_pack("{s:s, s:s, s:o, s:o}", "name", check->lines[i].name, "level", levels[f->level].name,
                                   "text", asym_json_shown(f->text), "remedy", asym_json_shown(f->remedy)));
    }
    return asym_json_print(json_pack("{s:s, s:o, s:s, s:o, s:b}", "schema", "asymd.check/1", "verdict",
                                     asym_json_shown(check->verdict), "situation",
                                     check->situation ? check->situation : "", "lines", lines, "can_run",
                                     (int)check->can_run),
                           out);
}

void asym_check_done(struct asym_check *check)
{
    free(check->lines);
    *check = (struct asym_check){.lines = NULL};
}
