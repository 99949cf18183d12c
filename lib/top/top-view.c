/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"
#include "base/sort.h"
#include "report/json.h"

struct sorted {
    const json_t *apps;
    enum asym_top_column column;
    bool reverse;
};

static int compare_numbers(double a, double b)
{
    return a > b ? -1 : a < b;
}

static const char *command_of(const json_t *app)
{
    const char *command = asym_json_get_text(app, "command");
    return *command ? command : asym_top_name(app);
}

/* By enum asym_top_column. Texts have no unit. */
static const struct {
    const char *key;
    double unit;
    int decimals;
    const char *suffix;
} values[] = {
    [ASYM_TOP_PID] = {"pid", 1, 0, ""},
    [ASYM_TOP_USER] = {.key = "user"},
    [ASYM_TOP_CPU] = {"running", 100, 0, ""}, /* in percent of one CPU */
    [ASYM_TOP_COMMAND] = {.key = "command"},
    [ASYM_TOP_CLASS] = {.key = "class_name"},
    [ASYM_TOP_RUNNABLE] = {"runnable", 1, 1, ""},
    [ASYM_TOP_THREADS] = {"threads", 1, 0, ""},
    [ASYM_TOP_STEERED] = {"steered", 1, 0, ""},
    [ASYM_TOP_SHARE] = {"fast_share", 100, 0, "%"},
    [ASYM_TOP_MOVES] = {"moves_per_minute", 1, 0, ""},
    [ASYM_TOP_REASON] = {.key = "reason"},
};

const char *asym_top_value(const json_t *app, enum asym_top_column column, char *buf, size_t size)
{
    if (!values[column].suffix)
        snprintf(buf, size, "%s", asym_json_get_text(app, values[column].key));
    else
        snprintf(buf, size, "%.*f%s", values[column].decimals,
                 values[column].unit * asym_json_get_number(app, values[column].key), values[column].suffix);
    return buf;
}

/* Numbers fall, but for the PID; texts rise. */
static int compare_column(const json_t *a, const json_t *b, enum asym_top_column column)
{
    if (column == ASYM_TOP_COMMAND)
        return strcasecmp(command_of(a), command_of(b));
    const char *key = values[column].key;
    if (!values[column].suffix)
        return strcmp(asym_json_get_text(a, key), asym_json_get_text(b, key));
    const int r = compare_numbers(asym_json_get_number(a, key), asym_json_get_number(b, key));
    return column == ASYM_TOP_PID ? -r : r;
}

/* On a tie the lower PID comes first, so that equal lines do not change places from frame to frame. */
static int compare(uint32_t a, uint32_t b, const void *ctx)
{
    const struct sorted *s = ctx;
    const json_t *x = json_array_get(s->apps, a), *y = json_array_get(s->apps, b);
    const int r = compare_column(x, y, s->column);
    if (r != 0)
        return s->reverse ? -r : r;
    return compare_numbers(asym_json_get_number(y, "pid"), asym_json_get_number(x, "pid"));
}

static bool passes(const json_t *app, const char *filter)
{
    static const char *const keys[] = {"command", "user", "cgroup"};
    const int64_t number = asym_json_get_int(app, "pid");
    char pid[24];
    snprintf(pid, sizeof pid, "%" PRId64, number);
    for (size_t i = 0; i < ASYM_LENGTH(keys); i++)
        if (strcasestr(asym_json_get_text(app, keys[i]), filter))
            return true;
    return strcasestr(asym_top_name(app), filter) || (number != 0 && strstr(pid, filter));
}

static int reserve(struct asym_top_order *order, size_t n)
{
    if (n <= order->allocated)
        return 0;
    uint32_t *both = reallocarray(NULL, n, 2 * sizeof *both);
    if (!both)
        return -ENOMEM;
    free(order->index);
    *order = (struct asym_top_order){.index = both, .scratch = both + n, .allocated = n};
    return 0;
}

int asym_top_order_make(struct asym_top_order *order, const json_t *frame, const struct asym_top_view *view)
{
    const json_t *apps = asym_top_apps(frame);
    const struct sorted sorted = {.apps = apps, .column = view->sort, .reverse = view->reverse};
    order->n = 0;
    const int r = reserve(order, json_array_size(apps));
    if (r < 0)
        return r;
    for (size_t i = 0; i < json_array_size(apps); i++)
        if (*view->filter == '\0' || passes(json_array_get(apps, i), view->filter))
            order->index[order->n++] = (uint32_t)i;
    asym_sort_index(order->index, order->n, order->scratch, compare, &sorted);
    return 0;
}

void asym_top_order_done(struct asym_top_order *order)
{
    free(order->index);
    *order = (struct asym_top_order){.index = NULL};
}

static void select_line(struct asym_top_view *view, const json_t *frame, const struct asym_top_order *order,
                        size_t line)
{
    view->pid = 0;
    *view->cgroup = '\0';
    view->line = order->n == 0 ? 0 : ASYM_MIN(line, order->n - 1);
    if (order->n == 0)
        return;
    const json_t *app = json_array_get(asym_top_apps(frame), order->index[view->line]);
    view->pid = (uint32_t)asym_json_get_int(app, "pid");
    snprintf(view->cgroup, sizeof view->cgroup, "%s", asym_json_get_text(app, "cgroup"));
}

void asym_top_follow(struct asym_top_view *view, const json_t *frame, const struct asym_top_order *order)
{
    for (size_t i = 0; i < order->n; i++) {
        const json_t *app = json_array_get(asym_top_apps(frame), order->index[i]);
        if (asym_json_get_int(app, "pid") != view->pid ||
            strncmp(asym_json_get_text(app, "cgroup"), view->cgroup, sizeof view->cgroup - 1) != 0)
            continue;
        view->line = i;
        return;
    }
    select_line(view, frame, order, view->line);
}

static size_t lines_of(const char *text)
{
    size_t n = 0;
    for (; text && (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

/* Returns the line to which a key moves from line at, of n lines. */
static size_t moved(size_t at, size_t n, size_t page, uint32_t key)
{
    const size_t last = n > 0 ? n - 1 : 0;
    switch (key) {
    case ASYM_TOP_KEY_UP:
    case 'k':
        return at > 0 ? at - 1 : 0;
    case ASYM_TOP_KEY_DOWN:
    case 'j':
        return ASYM_MIN(at + 1, last);
    case ASYM_TOP_KEY_PAGE_UP:
        return at > page ? at - page : 0;
    case ASYM_TOP_KEY_PAGE_DOWN:
    case ' ':
        return ASYM_MIN(at + page, last);
    case ASYM_TOP_KEY_HOME:
    case 'g':
        return 0;
    case ASYM_TOP_KEY_END:
    case 'G':
        return last;
    default:
        return at;
    }
}

static enum asym_top_action text_key(struct asym_top_view *view, uint32_t key)
{
    if (key == 'q' || key == '?' || key == ASYM_TOP_KEY_ESCAPE || key == ASYM_TOP_KEY_ENTER) {
        view->mode = ASYM_TOP_TABLE;
        view->first = 0;
    } else if (view->mode == ASYM_TOP_WHY) {
        view->first = moved(view->first, lines_of(view->why), view->page_lines, key);
    }
    return ASYM_TOP_DRAW;
}

/* Takes the last character off, with all of its bytes. */
static void delete_last(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && ((unsigned char)text[n - 1] & 0xc0) == 0x80)
        n--;
    text[n > 0 ? n - 1 : 0] = '\0';
}

static void append(char *text, size_t size, uint32_t key)
{
    const size_t n = strlen(text);
    char bytes[5] = {(char)key};
    if (key >= 0x10000)
        memcpy(bytes,
               (char[]){(char)(0xf0 | key >> 18), (char)(0x80 | (key >> 12 & 0x3f)), (char)(0x80 | (key >> 6 & 0x3f)),
                        (char)(0x80 | (key & 0x3f))},
               4);
    else if (key >= 0x800)
        memcpy(bytes, (char[]){(char)(0xe0 | key >> 12), (char)(0x80 | (key >> 6 & 0x3f)), (char)(0x80 | (key & 0x3f))},
               3);
    else if (key >= 0x80)
        memcpy(bytes, (char[]){(char)(0xc0 | key >> 6), (char)(0x80 | (key & 0x3f))}, 2);
    if (n + strlen(bytes) < size)
        memcpy(text + n, bytes, strlen(bytes) + 1);
}

/* Changes a text that the user types. Returns whether it is the end of typing: enter, or escape, which empties the text. */
static bool type_key(char *text, size_t size, uint32_t key)
{
    if (key == ASYM_TOP_KEY_ENTER)
        return true;
    if (key == ASYM_TOP_KEY_ESCAPE) {
        *text = '\0';
        return true;
    }
    if (key == ASYM_TOP_KEY_BACKSPACE)
        delete_last(text);
    else if (key >= 0x20 && key != 0x7f && key < ASYM_TOP_KEY_UP)
        append(text, size, key);
    return false;
}

static void ask(struct asym_top_view *view, enum asym_top_action action, const char *format, const char *subject)
    __attribute__((format(printf, 3, 0)));

/* subject: for the %s of the format. */
static void ask(struct asym_top_view *view, enum asym_top_action action, const char *format, const char *subject)
{
    view->mode = ASYM_TOP_CONFIRM;
    view->asked = action;
    view->asked_pid = view->pid;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(view->question, sizeof view->question, format, subject);
#pragma GCC diagnostic pop
}

static void policy_key(struct asym_top_view *view, uint32_t key)
{
    if (!type_key(view->policy, sizeof view->policy, key))
        return;
    view->mode = ASYM_TOP_TABLE;
    if (*view->policy)
        ask(view, ASYM_TOP_SET_POLICY, "Switch to policy %s until asymd ends? y/n", view->policy);
}

/* The keys that change the process under the cursor. */
static const struct {
    uint32_t key;
    enum asym_top_action action;
    const char *question;
} orders[] = {
    {'f', ASYM_TOP_SET_FAST, "Keep %s on fast CPUs until it ends? y/n"},
    {'s', ASYM_TOP_SET_SLOW, "Keep %s on slow CPUs until it ends? y/n"},
    {'i', ASYM_TOP_SET_IGNORE, "Leave %s alone until it ends? y/n"},
    {'a', ASYM_TOP_SET_AUTO, "Let the rules of the configuration decide about %s again? y/n"},
};

/* Returns whether the key is one of them. */
static bool ask_about_process(struct asym_top_view *view, const json_t *frame, const struct asym_top_order *order,
                              uint32_t key)
{
    char subject[96];
    size_t i = 0;
    while (i < ASYM_LENGTH(orders) && orders[i].key != key)
        i++;
    if (i == ASYM_LENGTH(orders))
        return false;
    if (view->line >= order->n)
        return true;
    if (view->pid == 0) {
        snprintf(view->message, sizeof view->message, "This row is a control group: asymctl set takes its processes.");
        return true;
    }
    const json_t *app = json_array_get(asym_top_apps(frame), order->index[view->line]);
    snprintf(subject, sizeof subject, "%.40s (%u)%s", asym_top_name(app), view->pid,
             asym_json_get_int(app, "processes") > 1 ? ", each process of the job," : "");
    ask(view, orders[i].action, orders[i].question, subject);
    return true;
}

static void sort_next(struct asym_top_view *view, unsigned step)
{
    view->sort = (enum asym_top_column)(((unsigned)view->sort + step) % ASYM_TOP_N_COLUMNS);
    view->reverse = false;
}

static enum asym_top_action table_key(struct asym_top_view *view, const json_t *frame,
                                      const struct asym_top_order *order, uint32_t key)
{
    switch (key) {
    case 'q':
        return ASYM_TOP_QUIT;
    case ASYM_TOP_KEY_ENTER:
        return view->pid != 0 ? ASYM_TOP_ASK_WHY : ASYM_TOP_DRAW;
    case ASYM_TOP_KEY_ESCAPE:
        *view->filter = '\0';
        break;
    case '/':
        view->mode = ASYM_TOP_FILTER;
        break;
    case 'p':
        ask(view, ASYM_TOP_PAUSE,
            asym_json_get_flag(frame, "paused") ? "Resume? asymd steers again. y/n"
                                                : "Pause? asymd puts every thread back. y/n",
            "");
        break;
    case 'o':
        view->mode = ASYM_TOP_POLICY;
        *view->policy = '\0';
        break;
    case '?':
    case 'h':
        view->mode = ASYM_TOP_HELP;
        view->first = 0;
        break;
    case '>':
        sort_next(view, 1);
        break;
    case '<':
        sort_next(view, ASYM_TOP_N_COLUMNS - 1);
        break;
    case 'r':
        view->reverse = !view->reverse;
        break;
    default:
        if (!ask_about_process(view, frame, order, key))
            select_line(view, frame, order, moved(view->line, order->n, view->page_lines, key));
    }
    return ASYM_TOP_DRAW;
}

enum asym_top_action asym_top_key(struct asym_top_view *view, const json_t *frame, const struct asym_top_order *order,
                                  uint32_t key)
{
    *view->message = '\0';
    switch (view->mode) {
    case ASYM_TOP_FILTER:
        view->mode = type_key(view->filter, sizeof view->filter, key) ? ASYM_TOP_TABLE : ASYM_TOP_FILTER;
        return ASYM_TOP_DRAW;
    case ASYM_TOP_POLICY:
        policy_key(view, key);
        return ASYM_TOP_DRAW;
    case ASYM_TOP_CONFIRM:
        view->mode = ASYM_TOP_TABLE;
        return key == 'y' || key == 'Y' ? view->asked : ASYM_TOP_DRAW;
    case ASYM_TOP_WHY:
    case ASYM_TOP_HELP:
        return text_key(view, key);
    case ASYM_TOP_TABLE:
        break;
    }
    return table_key(view, frame, order, key);
}
