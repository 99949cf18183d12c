/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * completion-gen SHELL PROGRAM OUT: write the completion script of asymd or asymctl for bash, zsh or fish, from the tables that
 * the programs parse their command lines with.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <asym/policy.h>

#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymd/mode.h"
#include "daemon/asymctl/verb.h"

/* The words that a shell offers for the argument of an option, or for an operand. */
enum offer {
    OFFER_NOTHING,
    OFFER_FILES,
    OFFER_DIRECTORIES,
    OFFER_PIDS,
    OFFER_PROCESSES, /* PIDs with the names of the programs */
    OFFER_ACTIONS,   /* of asymctl set */
    OFFER_RULES,     /* the words of asymctl rules */
    OFFER_POLICIES,
    OFFER_VERBS,
    OFFER_COMMAND,
    N_OFFERS,
};

/* By the name that an argument has in the help text. */
static enum offer offer_of(const struct asym_arg *row)
{
    static const struct {
        const char *argument;
        enum offer offer;
    } offers[] = {{"FILE", OFFER_FILES}, {"PATH", OFFER_FILES}, {"DIR", OFFER_DIRECTORIES}, {"PID", OFFER_PIDS}};
    if (strcmp(row->option.key, "--policy") == 0)
        return OFFER_POLICIES;
    for (size_t i = 0; row->argument && i < ASYM_LENGTH(offers); i++)
        if (strcmp(row->argument, offers[i].argument) == 0)
            return offers[i].offer;
    return OFFER_NOTHING;
}

/* By the name that the operand has in the usage line, behind a bracket or not: n is 0 for the first operand, 1 for the second. */
static enum offer operand_offer(const struct asym_verb *verb, size_t n)
{
    static const struct {
        const char *usage;
        enum offer offers[2];
    } operands[] = {
        {"VERB", {OFFER_VERBS}},
        {"PID|NAME fast", {OFFER_PROCESSES, OFFER_ACTIONS}},
        {"PID|NAME", {OFFER_PROCESSES}},
        {"NAME", {OFFER_POLICIES}},
        {"SCENARIO", {OFFER_FILES}},
        {"FILE", {OFFER_FILES}},
        {"test] [PID", {OFFER_RULES, OFFER_PROCESSES}},
    };
    if (verb->operands >= ASYM_OPERANDS_RUN)
        return n == 0 ? OFFER_COMMAND : OFFER_NOTHING;
    const char *given = verb->usage ? verb->usage : "", *usage = given + (*given == '[');
    for (size_t i = 0; i < ASYM_LENGTH(operands); i++)
        if (strncmp(usage, operands[i].usage, strlen(operands[i].usage)) == 0)
            return operands[i].offers[n];
    return OFFER_NOTHING;
}

/* A program is a list of verbs. asymd is a program with one verb, which has no name. */
struct program {
    const char *name;
    struct asym_verb only;
    struct asym_arg rows[ASYM_CLI_MAX_ROWS];
};

static const struct asym_verb *verb_at(const struct program *p, size_t i)
{
    if (p->only.name)
        return i == 0 ? &p->only : NULL;
    return asym_verb_at(i);
}

static const struct asym_arg *rows_of(const struct asym_verb *verb)
{
    static const struct asym_arg none = {.option = {.key = NULL}};
    return verb->args ? verb->args : &none;
}

static void put_policies(FILE *out)
{
    fputs("auto", out);
    for (size_t i = 0; asym_policy_at(i); i++)
        fprintf(out, " %s", asym_policy_at(i)->name);
}

static void put_verbs(FILE *out, const struct program *p)
{
    for (size_t i = 0; verb_at(p, i); i++)
        fprintf(out, "%s%s", i ? " " : "", verb_at(p, i)->name);
}

/* The words between bars behind the first operand of asymctl set. */
static void put_actions(FILE *out)
{
    const char *word = strchr(asym_verb_set.usage, ' ');
    for (word = word ? word + 1 : ""; *word && *word != ' '; word++)
        fputc(*word == '|' ? ' ' : *word, out);
}

/* Write a shell's text for the offer, with the names of the policies, verbs or actions for @. */
static void put_offer(FILE *out, const struct program *p, const char *text, enum offer offer)
{
    const size_t n = strcspn(text, "@");
    fprintf(out, "%.*s", (int)n, text);
    if (text[n] == '\0')
        return;
    if (offer == OFFER_POLICIES)
        put_policies(out);
    else if (offer == OFFER_ACTIONS)
        put_actions(out);
    else
        put_verbs(out, p);
    fputs(text + n + 1, out);
}

/* ---- bash ---- */

static const char *const bash_offers[N_OFFERS] = {
    [OFFER_NOTHING] = ":",
    [OFFER_FILES] = "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")",
    [OFFER_DIRECTORIES] = "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")",
    [OFFER_PIDS] = "_asym_processes",
    [OFFER_PROCESSES] = "_asym_processes",
    [OFFER_ACTIONS] = "words='@'",
    [OFFER_RULES] = "words=test",
    [OFFER_POLICIES] = "words='@'",
    [OFFER_VERBS] = "words='@'",
    [OFFER_COMMAND] = "mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")",
};

static void bash_options(FILE *out, const struct program *p)
{
    fputs("    case $verb in\n", out);
    for (size_t i = 0; verb_at(p, i); i++) {
        fprintf(out, "    %s) words='", *verb_at(p, i)->name ? verb_at(p, i)->name : "''");
        for (const struct asym_arg *row = rows_of(verb_at(p, i)); row->option.key; row++)
            fprintf(out, "%s%s ", row->option.key, row->argument ? "=" : "");
        fputs("' ;;\n", out);
    }
    fputs("    esac\n", out);
}

static void bash_values(FILE *out, const struct program *p)
{
    fputs("    case $verb$option in\n", out);
    for (size_t i = 0; verb_at(p, i); i++)
        for (const struct asym_arg *row = rows_of(verb_at(p, i)); row->option.key; row++)
            if (row->argument) {
                fprintf(out, "    %s%s) ", verb_at(p, i)->name, row->option.key);
                put_offer(out, p, bash_offers[offer_of(row)], offer_of(row));
                fputs("; return 0 ;;\n", out);
            }
    fputs("    esac\n    return 1\n", out);
}

static void bash_operands(FILE *out, const struct program *p)
{
    /* A command begins at its first word, wherever that stands. */
    fputs("    local i operands=0\n"
          "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
          "        [[ ${COMP_WORDS[i]} == [-=]* || ${COMP_WORDS[i-1]} == = ]] || operands=$((operands + 1))\n"
          "    done\n"
          "    case $verb$operands in\n",
          out);
    for (size_t i = 0; verb_at(p, i); i++)
        for (size_t n = 0; n < 2; n++) {
            const enum offer offer = operand_offer(verb_at(p, i), n);
            if (offer == OFFER_NOTHING)
                continue;
            if (offer == OFFER_COMMAND)
                fprintf(out, "    %s[0-9]*) ", verb_at(p, i)->name);
            else
                fprintf(out, "    %s%zu) ", verb_at(p, i)->name, n);
            put_offer(out, p, bash_offers[offer], offer);
            fputs(" ;;\n", out);
        }
    fputs("    esac\n", out);
}

static const char bash_command[] = "# The index of the first word of a command in $start; 0: there is none.\n"
                                   "_@_command()\n{\n"
                                   "    local i=2 option words COMPREPLY cur=\n"
                                   "    start=0\n"
                                   "    while [ $i -le \"$COMP_CWORD\" ] && [ $start -eq 0 ]; do\n"
                                   "        option=${COMP_WORDS[i]}\n"
                                   "        case $option in\n"
                                   "        --) start=$((i + 1)) ;;\n"
                                   "        -*)\n"
                                   "            if [ \"${COMP_WORDS[i+1]}\" = = ]; then i=$((i + 2))\n"
                                   "            elif _@_values; then i=$((i + 1)); fi ;;\n"
                                   "        *) start=$i ;;\n"
                                   "        esac\n"
                                   "        i=$((i + 1))\n"
                                   "    done\n"
                                   "    [ $start -le \"$COMP_CWORD\" ] || start=0\n"
                                   "}\n\n";

static const char bash_use_command[] = "    case $verb in\n"
                                       "    !)\n"
                                       "        _@_command\n"
                                       "        if [ $start -gt 0 ] && declare -F _command_offset >/dev/null; then\n"
                                       "            _command_offset $start\n"
                                       "            return\n"
                                       "        elif [ $start -gt 0 ] && [ $start -lt \"$COMP_CWORD\" ]; then\n"
                                       "            compopt -o filenames 2>/dev/null\n"
                                       "            mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
                                       "            return\n"
                                       "        fi ;;\n"
                                       "    esac\n";

/* Several PIDs get the names of their programs behind them; a single one stands alone, because it goes into the line. */
static const char bash_processes[] =
    "# PIDs, or the names of programs if the word begins with no digit.\n"
    "_asym_processes()\n{\n"
    "    local pid name byte IFS=$'\\n'\n"
    "    if [[ -n $cur && $cur != [0-9]* ]]; then\n"
    "        name=$(cat /proc/[0-9]*/comm 2>/dev/null | sort -u | grep -Ex '[A-Za-z0-9._+-]+')\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$name\" -- \"$cur\")\n"
    "        return 0\n"
    "    fi\n"
    "    for pid in /proc/\"$cur\"[0-9]* /proc/\"$cur\"; do\n"
    "        pid=${pid##*/}\n"
    "        # A kernel thread has no command line.\n"
    "        { IFS= read -rn 1 -d '' byte <\"/proc/$pid/cmdline\" && read -r name <\"/proc/$pid/comm\"; } 2>/dev/null "
    "|| continue\n"
    "        COMPREPLY+=(\"$pid  ($name)\")\n"
    "    done\n"
    "    [ ${#COMPREPLY[@]} -ne 1 ] || COMPREPLY=(\"${COMPREPLY[0]%% *}\")\n"
    "    return 0\n"
    "}\n\n";

static const char bash_begin[] =
    "_@()\n{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} verb= words= list= start=0\n"
    "    COMPREPLY=()\n";

static const char bash_end[] = "    # bash splits --policy=pa into three words.\n"
                               "    if [ \"$option\" = = ]; then\n"
                               "        option=${COMP_WORDS[COMP_CWORD-2]}\n"
                               "    elif [ \"$cur\" = = ]; then\n"
                               "        cur=\n"
                               "    fi\n"
                               "    if _@_values; then\n"
                               "        # The last of several policies.\n"
                               "        case $cur in *,*) list=${cur%,*},; cur=${cur##*,} ;; esac\n"
                               "    elif [[ $cur == -* ]]; then\n"
                               "        _@_options\n"
                               "    else\n"
                               "        _@_operands\n"
                               "    fi\n"
                               "    if [ -n \"$words\" ]; then\n"
                               "        mapfile -t COMPREPLY < <(compgen -P \"$list\" -W \"$words\" -- \"$cur\")\n"
                               "    fi\n"
                               "    if [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi\n"
                               "    return 0\n"
                               "}\n\n"
                               "complete -o bashdefault -F _@ @\n";

/* Write a part of a script, with the program's name for @, and the verbs that run a command for !. */
static void put_part(FILE *out, const char *part, const char *name, const char *verbs)
{
    for (; *part; part++)
        if (*part == '@')
            fputs(name, out);
        else if (*part == '!')
            fputs(verbs, out);
        else
            fputc(*part, out);
}

/* The verbs that run a command, as a pattern of case. */
static void command_verbs(const struct program *p, char *buf, size_t size)
{
    struct asym_text text = asym_text_in(buf, size);
    for (size_t i = 0; verb_at(p, i); i++)
        if (operand_offer(verb_at(p, i), 0) == OFFER_COMMAND)
            asym_text_add(&text, "%s%s", *buf ? "|" : "", verb_at(p, i)->name);
}

static void bash(FILE *out, const struct program *p)
{
    char verbs[256] = "";
    command_verbs(p, verbs, sizeof verbs);
    put_part(out, "# bash completion for @, made from its tables of options\n\n_@_options()\n{\n", p->name, verbs);
    bash_options(out, p);
    put_part(out, "}\n\n# The argument of $option. Returns 1 if it takes none.\n_@_values()\n{\n", p->name, verbs);
    bash_values(out, p);
    put_part(out, "}\n\n_@_operands()\n{\n", p->name, verbs);
    bash_operands(out, p);
    fputs("}\n\n", out);
    fputs(bash_processes, out);
    if (*verbs)
        put_part(out, bash_command, p->name, verbs);
    put_part(out, bash_begin, p->name, verbs);
    if (!p->only.name) {
        fputs("    verb=${COMP_WORDS[1]}\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='", out);
        put_verbs(out, p);
        fputs("'\n        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n        return\n    fi\n", out);
    }
    if (*verbs)
        put_part(out, bash_use_command, p->name, verbs);
    put_part(out, bash_end, p->name, verbs);
}

/* ---- zsh ---- */

/* A text in a specification of _arguments: brackets and colons are special there, and the whole stands in single quotes. */
static void zsh_text(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fprintf(out, "%s%c", strchr("[]:\\", *text) ? "\\" : "", *text);
}

static const char *const zsh_offers[N_OFFERS] = {
    [OFFER_NOTHING] = " ",
    [OFFER_FILES] = "_files",
    [OFFER_DIRECTORIES] = "_files -/",
    [OFFER_PIDS] = "_asym_processes",
    [OFFER_POLICIES] = "(@)",
    [OFFER_VERBS] = "(@)",
    [OFFER_COMMAND] = "_normal",
    [OFFER_PROCESSES] = "_asym_processes",
    [OFFER_ACTIONS] = "(@)",
    [OFFER_RULES] = "(test)",
};

/* The argument is a list of policies, separated by commas. */
static const char zsh_policy_list[] = "_values -s , policy @";

static const char *zsh_offer_of(const struct asym_arg *row)
{
    const enum offer offer = offer_of(row);
    return offer == OFFER_POLICIES && strchr(row->argument, ',') ? zsh_policy_list : zsh_offers[offer];
}

static void zsh_verb(FILE *out, const struct program *p, const struct asym_verb *verb)
{
    fputs("_arguments", out);
    for (const struct asym_arg *row = rows_of(verb); row->option.key; row++) {
        fprintf(out, " \\\n        '*%s%s[", row->option.key, row->argument ? "=" : "");
        zsh_text(out, row->option.help);
        fputc(']', out);
        if (row->argument) {
            fputc(':', out);
            zsh_text(out, row->argument);
            fputc(':', out);
            put_offer(out, p, zsh_offer_of(row), offer_of(row));
        }
        fputc('\'', out);
    }
    for (size_t n = 0; n < 2; n++) {
        const enum offer offer = operand_offer(verb, n);
        if (offer == OFFER_NOTHING)
            continue;
        fprintf(out, " \\\n        '%s", offer == OFFER_COMMAND ? "*::command:" : n == 0 ? "1:operand:" : "2:operand:");
        put_offer(out, p, zsh_offers[offer], offer);
        fputc('\'', out);
    }
    fputc('\n', out);
}

/* _pids would offer the processes of this terminal only. Kernel threads are children of process 2. */
static const char zsh_processes[] = "_asym_processes()\n{\n"
                                    "    local -a processes\n"
                                    "    local pid name\n"
                                    "    while read -r pid name; do\n"
                                    "        processes+=(\"$pid:$name\")\n"
                                    "    done < <(ps --ppid 2 -p 2 --deselect -o pid=,comm= 2>/dev/null)\n"
                                    "    _describe process processes\n"
                                    "}\n\n";

static void zsh(FILE *out, const struct program *p)
{
    fprintf(out, "#compdef %s\n# zsh completion for %s, made from its tables of options\n\n", p->name, p->name);
    fputs(zsh_processes, out);
    if (p->only.name) {
        zsh_verb(out, p, &p->only);
        return;
    }
    fputs("local -a verbs=(\n", out);
    for (size_t i = 0; verb_at(p, i); i++) {
        fprintf(out, "    '%s:", verb_at(p, i)->name);
        zsh_text(out, verb_at(p, i)->summary);
        fputs("'\n", out);
    }
    fputs(")\nif (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\nfi\n"
          "shift words\n(( CURRENT-- ))\ncase $words[1] in\n",
          out);
    for (size_t i = 0; verb_at(p, i); i++) {
        fprintf(out, "%s)\n    ", verb_at(p, i)->name);
        zsh_verb(out, p, verb_at(p, i));
        fputs("    ;;\n", out);
    }
    fputs("esac\n", out);
}

/* ---- fish ---- */

/* In single quotes only the quote and the backslash are special. */
static void fish_text(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++)
        fprintf(out, "%s%c", strchr("'\\", *text) ? "\\" : "", *text);
    fputc('\'', out);
}

static const char *const fish_offers[N_OFFERS] = {
    [OFFER_NOTHING] = " -x",
    [OFFER_FILES] = " -r -F",
    [OFFER_DIRECTORIES] = " -x -a '(__fish_complete_directories)'",
    [OFFER_PIDS] = " -x -a '(__fish_complete_pids)'",
    [OFFER_PROCESSES] = " -f -a '(__fish_complete_pids)'",
    [OFFER_ACTIONS] = " -f -a '@'",
    [OFFER_RULES] = " -f -a test",
    [OFFER_POLICIES] = " -x -a '@'",
    [OFFER_VERBS] = " -f -a '@'",
    [OFFER_COMMAND] = " -x -a '(__fish_complete_subcommand --fcs-skip=2)'",
};

static void fish_line(FILE *out, const struct program *p, const struct asym_verb *verb)
{
    fprintf(out, "complete -c %s", p->name);
    if (*verb->name)
        fprintf(out, " -n '__fish_seen_subcommand_from %s'", verb->name);
}

/* With one kind of operand it may stand anywhere, so that options before it do not count. */
static void fish_operands(FILE *out, const struct program *p, const struct asym_verb *verb)
{
    const bool has_two = operand_offer(verb, 1) != OFFER_NOTHING;
    for (size_t n = 0; n < 2; n++) {
        const enum offer offer = operand_offer(verb, n);
        if (offer == OFFER_NOTHING)
            continue;
        fish_line(out, p, verb);
        if (has_two)
            fprintf(out, " -n 'test (count (commandline -opc)) %s 2'", n == 0 ? "-eq" : "-gt");
        put_offer(out, p, fish_offers[offer], offer);
        fputc('\n', out);
    }
}

static void fish(FILE *out, const struct program *p)
{
    fprintf(out, "# fish completion for %s, made from its tables of options\ncomplete -c %s -f\n", p->name, p->name);
    for (size_t i = 0; verb_at(p, i); i++) {
        const struct asym_verb *verb = verb_at(p, i);
        if (*verb->name) {
            fprintf(out, "complete -c %s -n __fish_use_subcommand -a %s -d ", p->name, verb->name);
            fish_text(out, verb->summary);
            fputc('\n', out);
        }
        for (const struct asym_arg *row = rows_of(verb); row->option.key; row++) {
            fish_line(out, p, verb);
            fprintf(out, " -l %s", row->option.key + strlen("--"));
            if (row->argument)
                put_offer(out, p, fish_offers[offer_of(row)], offer_of(row));
            fputs(" -d ", out);
            fish_text(out, row->option.help);
            fputc('\n', out);
        }
        fish_operands(out, p, verb);
    }
}

static const struct {
    const char *name;
    void (*write)(FILE *out, const struct program *p);
} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

int main(int argc, char **argv)
{
    struct program p = {.name = argc == 4 ? argv[2] : ""};
    if (strcmp(p.name, "asymd") == 0) {
        asym_cli_rows(p.rows);
        p.only = (struct asym_verb){.name = "", .args = p.rows};
    }
    for (size_t i = 0; argc == 4 && i < ASYM_LENGTH(shells); i++) {
        if (strcmp(argv[1], shells[i].name) != 0)
            continue;
        FILE *out = fopen(argv[3], "we");
        if (!out) {
            perror(argv[3]);
            return 1;
        }
        shells[i].write(out, &p);
        const int failed = ferror(out);
        return fclose(out) != 0 || failed ? 1 : 0;
    }
    fputs("usage: completion-gen bash|zsh|fish asymd|asymctl OUT\n", stderr);
    return 2;
}
