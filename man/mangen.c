/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mangen page IN OUT: a manual page with its tables filled in: a line @NAME@ becomes the table of that name, @VERSION@,
 * @SYSCONFDIR@ and @PROFILES@ are replaced wherever they stand. mangen sample: the default configuration, to stdout.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <asym/plan.h>
#include <asym/policy.h>
#include <asym/settings.h>

#include "base/macro.h"
#include "daemon/cli.h"
#include "settings/internal.h"

/* Text for a place where mdoc may take words for macros or a leading dot for a request. */
static void put_text(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
    }
}

/* A help text is a phrase in --help and a sentence in the manual. */
static void put_sentence(FILE *out, const char *text)
{
    char copy[512];
    size_t n = (size_t)snprintf(copy, sizeof copy, "%s", text);
    if (copy[0] >= 'a' && copy[0] <= 'z')
        copy[0] = (char)(copy[0] - 'a' + 'A');
    put_text(out, copy);
    fputs(n > 0 && n < sizeof copy && copy[n - 1] == '.' ? "\n" : ".\n", out);
}

static int put_cli(FILE *out)
{
    const struct asym_cli_row *row;
    char help[256], modes[128];
    fputs(".Bl -tag -width Ds\n", out);
    for (size_t i = 0; (row = asym_cli_row_at(i)); i++) {
        fputs(".It Fl ", out);
        put_text(out, row->name + 1); /* Fl writes the first dash */
        if (row->argument) {
            fputs(" Ns = Ns Ar ", out);
            put_text(out, row->argument);
        }
        fputc('\n', out);
        asym_cli_row_modes(row, modes, sizeof modes);
        snprintf(help, sizeof help, "%s%s%s", row->help, *modes ? "; only with " : "", modes);
        put_sentence(out, help);
    }
    fputs(".El\n", out);
    return 0;
}

struct options {
    FILE *out;
    char section[64];
};

static int put_option(void *ctx, const char *section, const struct asym_option *row, const char *value,
                      const char *origin)
{
    struct options *o = ctx;
    char accepted[256];
    (void)origin;
    if (strcmp(o->section, section) != 0) {
        fprintf(o->out, "%s.Ss [%s]\n.Bl -tag -width Ds\n", *o->section ? ".El\n" : "", section);
        snprintf(o->section, sizeof o->section, "%s", section);
    }
    fprintf(o->out, ".It Cm %s\n", row->key);
    put_sentence(o->out, row->help);
    if (row->type != ASYM_OPTION_TEXT) {
        fputs("Accepted: ", o->out);
        put_text(o->out, asym_option_accepted(row, accepted, sizeof accepted));
        fputs(".\n", o->out);
    }
    fputs("Default: ", o->out);
    put_text(o->out, *value ? value : "empty");
    fputs(".\n", o->out);
    return 0;
}

static int put_options(FILE *out)
{
    struct options o = {.out = out};
    struct asym_settings *s;
    int r = asym_settings_new(&s);
    if (r < 0)
        return r;
    asym_settings_each(s, put_option, &o);
    fputs(".El\n", out);
    asym_settings_free(s);
    return 0;
}

static int put_policies(FILE *out)
{
    const struct asym_policy *p;
    fputs(".Bl -tag -width Ds\n", out);
    for (size_t i = 0; (p = asym_policy_at(i)); i++) {
        fprintf(out, ".It Cm %s\n", p->name);
        put_sentence(out, p->summary);
        fputs("Source: ", out);
        put_text(out, p->source);
        fprintf(out, ".\nSignals: %s", asym_signal_name(ASYM_SIGNAL_RUNNABLE));
        for (int k = ASYM_SIGNAL_RUNNABLE + 1; k < ASYM_N_SIGNALS; k++)
            if (p->needs >> k & 1)
                fprintf(out, ", %s", asym_signal_name((enum asym_signal)k));
        fprintf(out, ".\nPin: %s.\n", asym_pin_name(p->pin));
        if (p->refuses) {
            fputs("Cannot be run: ", out);
            put_text(out, p->refuses);
            fputs(".\n", out);
        }
    }
    fputs(".El\n", out);
    return 0;
}

/* Why a thread is not steered, with figures as they might stand there. */
static int put_exclusions(FILE *out)
{
    static const double figures[ASYM_N_REASONS][2] = {
        [ASYM_WHY_DENIED] = {1, 0},
        [ASYM_WHY_SETTLING] = {0.2, 0.5},
        [ASYM_WHY_FORKED] = {9.5, 0},
    };
    fputs(".Bl -bullet -compact\n", out);
    for (int r = ASYM_WHY_NONE + 1; r <= ASYM_WHY_LAST_EXCLUSION; r++) {
        char text[160];
        fputs(".It\n", out);
        put_text(out, asym_reason_text((enum asym_reason)r, figures[r], text, sizeof text));
        fputc('\n', out);
    }
    fputs(".El\n", out);
    return 0;
}

static const struct {
    const char *name;
    int (*put)(FILE *out);
} tables[] = {
    {"@CLI@\n", put_cli},
    {"@OPTIONS@\n", put_options},
    {"@POLICIES@\n", put_policies},
    {"@EXCLUSIONS@\n", put_exclusions},
};

static const struct {
    const char *name, *text;
} words[] = {
    {"@VERSION@", ASYM_VERSION},
    {"@SYSCONFDIR@", ASYM_SYSCONFDIR},
    {"@PROFILES@", ASYM_PROFILES},
};

static int put_line(FILE *out, const char *line)
{
    for (size_t i = 0; i < ASYM_LENGTH(tables); i++)
        if (strcmp(line, tables[i].name) == 0)
            return tables[i].put(out);
    while (*line) {
        size_t i = 0;
        while (i < ASYM_LENGTH(words) && strncmp(line, words[i].name, strlen(words[i].name)) != 0)
            i++;
        if (i == ASYM_LENGTH(words)) {
            fputc(*line++, out);
            continue;
        }
        fputs(words[i].text, out);
        line += strlen(words[i].name);
    }
    return 0;
}

static int make_page(const char *from, const char *to)
{
    ASYM_AUTO_FREE char *line = NULL;
    size_t size = 0;
    int r = 0;
    ASYM_AUTO_FCLOSE FILE *in = fopen(from, "re");
    if (!in)
        return -errno;
    FILE *out = fopen(to, "we");
    if (!out)
        return -errno;
    while (r >= 0 && getline(&line, &size, in) >= 0)
        r = put_line(out, line);
    if (fclose(out) != 0 && r >= 0)
        r = -errno;
    return r;
}

int main(int argc, char **argv)
{
    int r = -EINVAL;
    if (argc == 4 && strcmp(argv[1], "page") == 0)
        r = make_page(argv[2], argv[3]);
    else if (argc == 2 && strcmp(argv[1], "sample") == 0)
        r = asym_settings_print_sample(stdout);
    if (r >= 0 && fflush(stdout) != 0)
        r = -errno;
    if (r < 0)
        fprintf(stderr, "mangen: %s\nusage: mangen page IN OUT | mangen sample\n", strerror(-r));
    return r < 0;
}
