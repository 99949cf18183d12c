/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/verb.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "config/option-value.h"

/* The table of the verbs, from verbs.def, and help, which prints it. */

static const struct asym_verb *const verbs[] = {
#define ASYM_VERB(name) &asym_verb_##name,
#include "daemon/asymctl/verbs.def"
#undef ASYM_VERB
};

const struct asym_verb *asym_verb_at(size_t i)
{
    return i < ASYM_LENGTH(verbs) ? verbs[i] : NULL;
}

const struct asym_verb *asym_verb_find(const char *name)
{
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

int asym_verb_unknown(const char *name)
{
    struct asym_nearest n = {.wanted = name};
    char text[128], hint[64];
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++)
        asym_nearest_list(&n, verbs[i]->name);
    return asym_verb_fail(ASYM_EXIT_USAGE, "unknown verb '%s'%s; accepted are %s",
                          asym_text_show(name, text, sizeof text), asym_nearest_hint(&n, hint, sizeof hint), n.list);
}

/* The most operands of a verb without a command. */
#define ASYM_OPERANDS_MAX 32

static const struct asym_arg no_args[] = {{.option = {.key = NULL}}};

const struct asym_arg asym_verb_json_args[] = {
    ASYM_ARG_OF(struct asym_verb_json, "--json", BOOL, NULL, json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

const struct asym_arg asym_verb_config_args[] = {
    ASYM_ARG_OF(struct asym_verb_config, "--config", STRING, "FILE", config,
                .help = "a configuration, instead of that of the running asymd"),
    ASYM_ARG_OF(struct asym_verb_config, "--json", BOOL, NULL, json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

int asym_verb_fail(enum asym_exit status, const char *format, ...)
{
    char text[2048], message[2048 + sizeof "asymctl: "];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    snprintf(message, sizeof message, "asymctl: %s", text);
    asym_terminal_message(stderr, message);
    return (int)status;
}

int asym_verb_reported(int r)
{
    return r >= 0 || ferror(stdout) ? ASYM_EXIT_DONE : asym_verb_fail(ASYM_EXIT_FAILED, "%s", strerror(-r));
}

int asym_verb_each_word(const char *list, int (*fn)(void *ctx, const char *word, struct asym_error *err), void *ctx,
                        struct asym_error *err)
{
    int r = 0, first = 0;
    for (const char *at = list; r >= 0 && at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[128];
        snprintf(word, sizeof word, "%.*s", (int)ASYM_MIN(strcspn(at, ","), sizeof word - 1), at);
        r = fn(ctx, word, err);
        first = at == list ? r : first;
    }
    return r < 0 ? r : first;
}

int asym_verb_end(int status)
{
    const int r = asym_output_end();
    if (r == 0)
        return status;
    fprintf(stderr, "asymctl: cannot write to standard output: %s\n", strerror(-r));
    return ASYM_EXIT_FAILED;
}

static size_t put_word(const struct asym_terminal *terminal, const char *word, size_t at, size_t indent)
{
    if (at + 1 + strlen(word) > terminal->columns)
        at = (size_t)fprintf(terminal->out, "\n%*s", (int)indent, "") - 1;
    return at + (size_t)fprintf(terminal->out, " %s", word);
}

/* Print "usage: asymctl sim SCENARIO.ini [--policy=NAME,...]", wrapped as wide as the terminal. */
static void verb_usage(const struct asym_verb *verb, const struct asym_terminal *terminal)
{
    const bool is_command = verb->operands >= ASYM_OPERANDS_RUN;
    const size_t indent = (size_t)fprintf(terminal->out, "usage: asymctl %s", verb->name);
    size_t at = indent;
    if (verb->usage && !is_command)
        at = put_word(terminal, verb->usage, at, indent);
    for (const struct asym_arg *row = verb->args; row && row->option.key; row++) {
        char words[160], name[64];
        struct asym_text word = asym_text_in(words, sizeof words);
        asym_text_add(&word, "[%s", asym_args_name(row, name, sizeof name));
        for (; row->or_next; row++)
            asym_text_add(&word, " | %s", asym_args_name(row + 1, name, sizeof name));
        asym_text_add(&word, "]");
        at = put_word(terminal, words, at, indent);
    }
    if (is_command)
        put_word(terminal, verb->usage, at, indent);
    fputc('\n', terminal->out);
}

static int stray(const struct asym_verb *verb, const char *word, struct asym_error *err)
{
    char text[128];
    return asym_fail(err, -EINVAL, "stray argument '%s'%s", asym_text_show(word, text, sizeof text),
                     verb->operands == ASYM_OPERANDS_BEHIND ? "; the command stands after --" : "");
}

static size_t max_operands(const struct asym_verb *verb)
{
    static const unsigned char most[] = {
        [ASYM_OPERANDS_NONE] = 0, [ASYM_OPERANDS_MAY] = 1,  [ASYM_OPERANDS_MUST] = 1,
        [ASYM_OPERANDS_TWO] = 2,  [ASYM_OPERANDS_SOME] = 2, [ASYM_OPERANDS_ANY] = ASYM_OPERANDS_MAX};
    return verb->operands < ASYM_LENGTH(most) ? most[verb->operands] : 0;
}

static bool lacks_operands(const struct asym_verb *verb, char *const operands[ASYM_OPERANDS_MAX])
{
    const bool must = verb->operands == ASYM_OPERANDS_MUST || verb->operands == ASYM_OPERANDS_TWO;
    const char *last = must ? operands[max_operands(verb) - 1] : NULL;
    /* A script whose variable is empty gives an empty word. */
    return must && (!last || !*last || !*operands[0]);
}

/*
 * Parses the options into args. Returns the index of the first word of a command. For a verb without a command returns argc,
 * and sets ret_operands, from the first on, to its operands. -EINVAL, -ENOMEM with err.
 */
static int parse(const struct asym_verb *verb, int argc, char **argv, void *args, char *ret_operands[ASYM_OPERANDS_MAX],
                 struct asym_error *err)
{
    const struct asym_arg *rows = verb->args ? verb->args : no_args;
    const bool is_command = verb->operands >= ASYM_OPERANDS_RUN;
    size_t n = 0;
    for (int i = 1; i < argc; i++) {
        size_t row;
        if (is_command && strcmp(argv[i], "--") == 0)
            return i + 1;
        const int r = asym_args_take(rows, argc, argv, &i, args, &row, err);
        if (r < 0)
            return r;
        if (r > 0)
            continue;
        if (argv[i][0] == '-' && (argv[i][1] == '-' || !is_command))
            return asym_args_unknown(rows, argv[i], "", err);
        if (verb->operands == ASYM_OPERANDS_RUN)
            return i;
        if (n >= max_operands(verb))
            return stray(verb, argv[i], err);
        ret_operands[n++] = argv[i];
    }
    return argc;
}

int asym_verb_wrong_usage(const struct asym_verb *verb, const char *what)
{
    const struct asym_terminal terminal = asym_terminal_of(stderr);
    asym_verb_fail(ASYM_EXIT_USAGE, "%s: %s", verb->name, what);
    verb_usage(verb, &terminal);
    return ASYM_EXIT_USAGE;
}

int asym_verb_run(const struct asym_verb *verb, int argc, char **argv)
{
    union {
        unsigned char bytes[ASYM_ARGS_MAX];
        max_align_t aligned;
    } args = {.bytes = {0}};
    struct asym_error err = {""};
    char *operands[ASYM_OPERANDS_MAX + 1] = {NULL}, needs[64];
    int r = asym_args_default(verb->args ? verb->args : no_args, &args);
    if (r < 0)
        return asym_verb_fail(ASYM_EXIT_FAILED, "%s", strerror(-r));
    r = parse(verb, argc, argv, &args, operands, &err);
    if (r < 0)
        return asym_verb_wrong_usage(verb, err.text);
    const bool is_command = verb->operands >= ASYM_OPERANDS_RUN;
    if (is_command ? r >= argc : lacks_operands(verb, operands)) {
        snprintf(needs, sizeof needs, "needs %s", verb->needs);
        return asym_verb_wrong_usage(verb, needs);
    }
    return verb->run(&args, is_command ? argv + r : operands);
}

static int help_of(const char *name)
{
    const struct asym_verb *v = asym_verb_find(name);
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    char option[64], path[ASYM_PATH_SIZE];
    if (!v)
        return asym_verb_unknown(name);
    verb_usage(v, &terminal);
    putchar('\n');
    asym_columns_text(&terminal, v->help);
    int width = 0;
    for (const struct asym_arg *row = v->args; row && row->option.key; row++)
        width = ASYM_MAX(width, (int)strlen(asym_args_name(row, option, sizeof option)) + 1);
    if (width > 0)
        putchar('\n');
    for (const struct asym_arg *row = v->args; row && row->option.key; row++)
        asym_args_line(&terminal, width, asym_args_name(row, option, sizeof option), row->option.help);
    if (v->file_option)
        printf("\nDefault of %s: %s\n", v->file_option, asym_path(v->file, path));
    return ASYM_EXIT_DONE;
}

static int help(const void *args, char **operands)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    const struct asym_verb *v;
    if (operands[0])
        return help_of(operands[0]);
    puts("usage: asymctl VERB [ARGUMENT...]\n");
    for (size_t i = 0; (v = asym_verb_at(i)); i++)
        asym_args_line(&terminal, 10, v->name, v->summary);
    asym_columns_text(&terminal,
                      "\nExit status: 0 done; 1 failed; 2 wrong usage; 3 a measurement that is needed is missing "
                      "here; 4 not permitted; 5 no asymd runs.\n");
    return ASYM_EXIT_DONE;
}

const struct asym_verb asym_verb_help = {
    .name = "help",
    .operands = ASYM_OPERANDS_MAY,
    .usage = "[VERB]",
    .summary = "print this text, or the help of one verb",
    .help = "Prints the help of VERB, or the list of verbs.\n",
    .run = help,
};
