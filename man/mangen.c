/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mangen page IN OUT: a manual page with its tables filled in: a line @NAME@ becomes the table of that name, @VERSION@,
 * @SYSCONFDIR@, @DATADIR@ and @PROFILES@ are replaced wherever they stand. mangen sample OUT: the default configuration.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <asym/plan.h>
#include <asym/policy.h>

#include "base/macro.h"
#include "daemon/asymd/mode.h"
#include "daemon/asymctl/verb.h"
#include "config/config.h"
#include "config/option-value.h"
#include "sim/scenario.h"

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
    const bool is_name = strncmp(copy, "asymd ", strlen("asymd ")) == 0; /* a name is not capitalised */
    if (!is_name && copy[0] >= 'a' && copy[0] <= 'z')
        copy[0] = (char)(copy[0] - 'a' + 'A');
    put_text(out, copy);
    fputs(n > 0 && n < sizeof copy && copy[n - 1] == '.' ? "\n" : ".\n", out);
}

static int put_cli(FILE *out)
{
    struct asym_arg rows[ASYM_CLI_MAX_ROWS];
    char help[256], modes[128];
    asym_cli_rows(rows);
    fputs(".Bl -tag -width Ds\n", out);
    for (const struct asym_arg *row = rows; row->option.key; row++) {
        fputs(".It Fl ", out);
        put_text(out, row->option.key + 1); /* Fl writes the first dash */
        if (row->argument) {
            fputs(" Ns = Ns Ar ", out);
            put_text(out, row->argument);
        }
        fputc('\n', out);
        asym_cli_row_modes(row, modes, sizeof modes);
        snprintf(help, sizeof help, "%s%s%s", row->option.help, *modes ? "; only with " : "", modes);
        put_sentence(out, help);
    }
    fputs(".El\n", out);
    return 0;
}

static void put_lower(FILE *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fputc(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i], out);
}

/* An operand as the usage has it: "[ARGUMENT...]", "--", "PROGRAM". */
static void put_operand(FILE *out, const char *word, size_t n)
{
    const bool is_optional = word[0] == '[';
    if (is_optional) {
        word++;
        n -= 2;
    }
    fputs(is_optional ? ".Op " : ".", out);
    if (n == 2 && memcmp(word, "--", 2) == 0) {
        fputs("Fl \\-\n", out);
        return;
    }
    const bool repeats = n > 3 && memcmp(word + n - 3, "...", 3) == 0;
    fputs("Ar ", out);
    put_lower(out, word, repeats ? n - 3 : n);
    fputs(repeats ? " ...\n" : "\n", out);
}

static void put_operands(FILE *out, const char *usage)
{
    while (usage && *usage) {
        const size_t n = strcspn(usage, " ");
        put_operand(out, usage, n);
        usage += n + strspn(usage + n, " ");
    }
}

static void put_flag(FILE *out, const struct asym_arg *row)
{
    fputs("Fl ", out);
    put_text(out, row->option.key + 1); /* Fl writes the first dash */
    fputs(row->argument ? " Ns = Ns Ar " : "", out);
    put_lower(out, row->argument ? row->argument : "", row->argument ? strlen(row->argument) : 0);
}

/* The verbs of asymctl, each with its options and operands. */
static int put_synopsis(FILE *out)
{
    const struct asym_verb *v;
    for (size_t i = 0; (v = asym_verb_at(i)); i++) {
        const bool is_command = v->operands >= ASYM_OPERANDS_RUN;
        fprintf(out, ".Nm asymctl\n.Cm %s\n", v->name);
        if (!is_command)
            put_operands(out, v->usage);
        for (const struct asym_arg *row = v->args; row && row->option.key; row++) {
            fputs(".Op ", out);
            put_flag(out, row);
            for (; row->or_next; row++) {
                fputs(" | ", out);
                put_flag(out, row + 1);
            }
            fputc('\n', out);
        }
        if (is_command)
            put_operands(out, v->usage);
    }
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

/* The defaults of scenarios, but for those that are 0, no or none. */
static int put_scenario(FILE *out)
{
    const struct asym_option *o;
    const char *section = "";
    for (size_t i = 0; (o = asym_scenario_option(i)); i++) {
        const char *value = o->def ? o->def : o->type == ASYM_OPTION_ENUM ? o->values[0] : NULL;
        if (!value)
            continue;
        if (strcmp(section, o->section) != 0)
            fprintf(out, "%s[%s] %s ", *section ? ";\n" : "", o->section, o->key);
        else
            fprintf(out, ", %s ", o->key);
        put_text(out, value);
        section = o->section;
    }
    fputs(".\n", out);
    return 0;
}

/* The reasons why a thread is not steered. */
static int put_exclusions(FILE *out)
{
    fputs(".Bl -bullet -compact\n", out);
    for (int k = ASYM_WHY_NONE + 1; k < ASYM_N_EXCLUSIONS; k++) {
        fputs(".It\n", out);
        put_text(out, asym_reason_several(asym_why((enum asym_exclusion)k)));
        fputc('\n', out);
    }
    fputs(".El\n", out);
    return 0;
}

static const struct {
    const char *name;
    int (*put)(FILE *out);
} tables[] = {
    {"@CLI@\n", put_cli},           {"@SYNOPSIS@\n", put_synopsis}, {"@OPTIONS@\n", put_options},
    {"@POLICIES@\n", put_policies}, {"@SCENARIO@\n", put_scenario}, {"@EXCLUSIONS@\n", put_exclusions},
};

static const struct {
    const char *name, *text;
} words[] = {
    {"@VERSION@", ASYM_VERSION},
    {"@SYSCONFDIR@", ASYM_SYSCONFDIR},
    {"@DATADIR@", ASYM_DATADIR},
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

static int make_sample(const char *to)
{
    FILE *out = fopen(to, "we");
    if (!out)
        return -errno;
    int r = asym_settings_print_sample(out);
    if (fclose(out) != 0 && r >= 0)
        r = -errno;
    return r;
}

int main(int argc, char **argv)
{
    int r = -EINVAL;
    if (argc == 4 && strcmp(argv[1], "page") == 0)
        r = make_page(argv[2], argv[3]);
    else if (argc == 3 && strcmp(argv[1], "sample") == 0)
        r = make_sample(argv[2]);
    if (r < 0)
        fprintf(stderr, "mangen: %s\nusage: mangen page IN OUT | mangen sample OUT\n", strerror(-r));
    return r < 0;
}
