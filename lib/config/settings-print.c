/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/config-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mask.h"
#include "config/settings-rows.h"

int asym_settings_each(const struct asym_settings *s,
                       int (*fn)(void *ctx, const char *section, const struct asym_option *row, const char *value,
                                 const char *origin),
                       void *ctx)
{
    struct asym_row row;
    char text[ASYM_MASK_LIST_MAX];
    int r = 0;
    for (size_t i = 0; r == 0 && asym_row_at(s, i, &row); i++)
        r = fn(ctx, row.section, row.option, asym_option_format(row.option, row.base, text, sizeof text),
               s->priv->origins[i] ? s->priv->origins[i] : "default");
    return r;
}

struct print {
    FILE *out;
    char section[64];
};

static void enter_section(struct print *p, const char *section)
{
    if (strcmp(p->section, section) == 0)
        return;
    fprintf(p->out, "%s[%s]\n", *p->section ? "\n" : "", section);
    snprintf(p->section, sizeof p->section, "%s", section);
}

static int print_row(void *ctx, const char *section, const struct asym_option *row, const char *value,
                     const char *origin)
{
    struct print *p = ctx;
    enter_section(p, section);
    fprintf(p->out, "%s =%s%s ; %s\n", row->key, *value ? " " : "", value, origin);
    return ferror(p->out) ? -EIO : 0;
}

int asym_settings_print(const struct asym_settings *s, FILE *out)
{
    struct print p = {.out = out};
    int r = asym_settings_each(s, print_row, &p);
    if (r < 0)
        return r;
    asym_rules_print(s->rules, out);
    return ferror(out) ? -EIO : 0;
}

static int print_sample_row(void *ctx, const char *section, const struct asym_option *row, const char *value,
                            const char *origin)
{
    struct print *p = ctx;
    char accepted[256];
    enter_section(p, section);
    fprintf(p->out, "# %s\n", row->help);
    if (row->type != ASYM_OPTION_TEXT)
        fprintf(p->out, "# Accepted: %s.\n", asym_option_accepted(row, accepted, sizeof accepted));
    fprintf(p->out, ";%s =%s%s\n", row->key, *value ? " " : "", value);
    return ferror(p->out) ? -EIO : 0;
}

int asym_settings_print_sample(FILE *out)
{
    struct print p = {.out = out};
    struct asym_settings *s;
    int r = asym_settings_new(&s);
    if (r < 0)
        return r;
    fputs("# Configuration of asymd: see asymd.conf(5).\n"
          "# This file lists every option with its default, commented out. Rules go here or into rules.d/*.conf.\n\n",
          out);
    r = asym_settings_each(s, print_sample_row, &p);
    asym_settings_free(s);
    if (r < 0)
        return r;
    fputs("\n# Rules for single processes. The first rule that matches applies.\n"
          ";[rule \"compilers\"]\n"
          ";match_comm = cc1 cc1plus rustc\n"
          ";action = steer\n",
          out);
    return ferror(out) ? -EIO : 0;
}
