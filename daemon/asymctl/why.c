/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/why.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/wording.h"

static void print_sentences(const struct asym_client_explanation *e, const struct asym_terminal *terminal)
{
    char buf[8192];
    struct asym_text all = asym_text_in(buf, sizeof buf);
    for (size_t i = 0; i < e->n_sentences; i++) {
        char named[2048], text[2048];
        asym_name_user_of_rule(e->sentences[i], named, sizeof named);
        asym_text_add(&all, "%s%s", i > 0 ? " " : "", asym_text_escape(named, strlen(named), text, sizeof text));
    }
    asym_columns_wrap(terminal, buf, 0, 0);
    fputc('\n', terminal->out);
}

static void print_evidence(const struct asym_client_explanation *e, const struct asym_terminal *terminal)
{
    size_t width = 0;
    char name[256], value[2048];
    for (size_t i = 0; i < e->n_evidence; i++)
        width = asym_columns_wider(
            width, asym_text_escape(e->evidence[i].name, strlen(e->evidence[i].name), name, sizeof name));
    width = ASYM_MIN(width, (size_t)30) + 2;
    fputs(e->n_evidence > 0 ? "\n" : "", terminal->out);
    for (size_t i = 0; i < e->n_evidence; i++) {
        const struct asym_client_evidence *p = &e->evidence[i];
        char cut[256];
        asym_text_escape(p->name, strlen(p->name), name, sizeof name);
        asym_text_escape(p->value, strlen(p->value), value, sizeof value);
        fputs("  ", terminal->out);
        asym_columns_cell(terminal->out, asym_columns_cut(name, width - 2, cut, sizeof cut), width, NULL);
        asym_columns_wrap(terminal, value, width + 2, width + 2);
        fputc('\n', terminal->out);
    }
}

static void print_decision(const struct asym_client_decision *d, const struct asym_terminal *terminal)
{
    char time[ASYM_UNITS_SIZE], cpus[ASYM_DECISION_CPUS], line[800];
    const int indent = snprintf(line, sizeof line, "  %s %7" PRIu32 " %s ", asym_units_time_ms(d->time, time), d->tid,
                                asym_decision_cpus(d->from, d->to, cpus));
    fputs(line, terminal->out);
    asym_decision_what(d->what, d->reason, line, sizeof line);
    asym_columns_wrap(terminal, line, (size_t)indent, (size_t)indent);
    fputc('\n', terminal->out);
}

int asym_why_text(const struct asym_client_explanation *why, const struct asym_terminal *terminal)
{
    print_sentences(why, terminal);
    print_evidence(why, terminal);
    if (why->n_decisions > 0)
        fprintf(terminal->out,
                "\nThe last decision%s, the newest first:\n  TIME             TID " ASYM_DECISION_HEADINGS "\n",
                why->n_decisions == 1 ? "" : "s");
    for (size_t i = 0; i < why->n_decisions; i++)
        print_decision(&why->decisions[i], terminal);
    return ferror(terminal->out) ? -EIO : 0;
}
