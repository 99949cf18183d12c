/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/top-internal.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include <term.h>
#undef columns /* <term.h> has macros of usual words */

#include "base/macro.h"
#include "base/text.h"
#include "report/columns.h"

/* The time that ncurses waits after ESC for the rest of a key's sequence, in milliseconds. */
#define ESCAPE_DELAY 50

static const struct {
    short pair, foreground, background;
    attr_t coloured, plain; /* plain: where there are no colours */
} styles[ASYM_TOP_N_STYLES] = {
    [ASYM_TOP_PLAIN] = {0, -1, -1, A_NORMAL, A_NORMAL},
    [ASYM_TOP_HEADING] = {1, COLOR_BLACK, COLOR_GREEN, A_NORMAL, A_REVERSE},
    [ASYM_TOP_SELECTED] = {2, COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_REVERSE},
    [ASYM_TOP_ALERT] = {3, COLOR_RED, -1, A_BOLD, A_BOLD},
    [ASYM_TOP_FAST] = {4, COLOR_GREEN, -1, A_BOLD, A_BOLD},
    [ASYM_TOP_BUSY] = {5, COLOR_YELLOW, -1, A_NORMAL, A_NORMAL},
};

/* ncurses has one screen at a time, so this is about the process. */
static struct {
    SCREEN *screen;
    bool colours;
    bool stale; /* the terminal took no output when a page was to be drawn */
} current;

#define ONCE "asymctl top --once prints one frame as text"

int asym_top_terminal_check(struct asym_error *err)
{
    const char *name = getenv("TERM");
    char text[128];
    int found;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return asym_fail(err, -ENOTTY, "top needs a terminal on standard input and output; " ONCE);
    if (!name || *name == '\0')
        return asym_fail(err, -ENOTTY, "TERM does not say which terminal this is; " ONCE);
    asym_text_show(name, text, sizeof text);
    if (setupterm(name, STDOUT_FILENO, &found) != OK)
        return asym_fail(err, -ENOTTY, "no terminal TERM=%s is known here; " ONCE, text);
    const char *move = tigetstr("cup");
    const bool moves = move && move != (char *)-1;
    del_curterm(cur_term);
    if (!moves)
        return asym_fail(err, -ENOTTY, "a terminal with TERM=%s cannot move its cursor; " ONCE, text);
    return 0;
}

static void start_colours(void)
{
    const char *no_colour = getenv("NO_COLOR");
    current.colours = has_colors() && !(no_colour && *no_colour) && start_color() == OK;
    if (!current.colours)
        return;
    const bool defaults = use_default_colors() == OK;
    for (unsigned i = 1; i < ASYM_LENGTH(styles); i++) {
        const short background = styles[i].background;
        init_pair(styles[i].pair, styles[i].foreground, background < 0 && !defaults ? COLOR_BLACK : background);
    }
}

int asym_top_screen_open(struct asym_error *err)
{
    sigset_t resize;
    setlocale(LC_CTYPE, "");
    current.screen = newterm(NULL, stdout, stdin);
    if (!current.screen)
        return asym_fail(err, -ENOTTY, "the terminal cannot show a screen; " ONCE);
    sigemptyset(&resize);
    sigaddset(&resize, SIGWINCH);
    sigprocmask(SIG_BLOCK, &resize, NULL);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(ESCAPE_DELAY);
    curs_set(0);
    start_colours();
    return 0;
}

bool asym_top_screen_takes_output(void)
{
    struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&fd, 1, 0) > 0;
}

/* The kernel restarts only an output that was stopped in the same way, and Ctrl-S is another way than TCOOFF. */
static void restart_output(void)
{
    tcflow(STDOUT_FILENO, TCOOFF);
    tcflow(STDOUT_FILENO, TCOON);
}

void asym_top_screen_unblock(void)
{
    restart_output();
    tcflush(STDOUT_FILENO, TCOFLUSH);
}

void asym_top_screen_close(void)
{
    if (!current.screen)
        return;
    restart_output();
    if (!asym_top_screen_takes_output())
        tcflush(STDOUT_FILENO, TCOFLUSH);
    endwin();
    delscreen(current.screen);
    current.screen = NULL;
}

void asym_top_screen_size(unsigned *ret_columns, unsigned *ret_rows)
{
    *ret_columns = (unsigned)ASYM_MAX(getmaxx(stdscr), 1);
    *ret_rows = (unsigned)ASYM_MAX(getmaxy(stdscr), 1);
}

/* Draws one character of several bytes. If the locale cannot show it in as many columns, draws question marks. */
static void draw_character(const char *character, size_t bytes)
{
    wchar_t wide[2] = {0};
    mbstate_t shift = {0};
    const size_t columns = asym_columns_of(character);
    if (mbrtowc(wide, character, bytes, &shift) == bytes && wcwidth(wide[0]) == (int)columns) {
        addnwstr(wide, 1);
        return;
    }
    for (size_t i = 0; i < columns; i++)
        addch('?');
}

static void draw_text(const char *text)
{
    while (*text) {
        char character[8];
        size_t n = strspn(
            text, " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~");
        addnstr(text, (int)n);
        text += n;
        if (*text == '\0')
            return;
        for (n = 1; ((unsigned char)text[n] & 0xc0) == 0x80 && n < sizeof character - 1;)
            n++;
        memcpy(character, text, n);
        character[n] = '\0';
        draw_character(character, n);
        text += n;
    }
}

void asym_top_screen_draw(const struct asym_top_page *page)
{
    current.stale = !asym_top_screen_takes_output();
    if (current.stale)
        return;
    erase();
    for (size_t i = 0; i < page->n_pieces; i++) {
        const struct asym_top_piece *piece = &page->pieces[i];
        if (current.colours)
            attr_set(styles[piece->style].coloured, styles[piece->style].pair, NULL);
        else
            attr_set(styles[piece->style].plain, 0, NULL);
        if (move((int)piece->row, (int)piece->column) == OK)
            draw_text(page->text + piece->text);
    }
    refresh();
}

/*
 * A terminal that is readable without a byte to read is at its end of file. The number of bytes says so, and a missing key does
 * not: get_wch has no key for a byte that the locale does not know, either.
 */
static bool has_ended(short events)
{
    struct pollfd again = {.fd = STDIN_FILENO, .events = POLLIN};
    int bytes;
    if (events & (POLLHUP | POLLERR | POLLNVAL))
        return true;
    if (!(events & POLLIN) || (ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0))
        return false;
    /* On Ctrl-Z the kernel discards the keys that top has not read yet. Then the terminal is not readable any more. */
    return poll(&again, 1, 0) > 0;
}

bool asym_top_screen_wait(asym_usec timeout, const sigset_t *mask)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = STDOUT_FILENO, .events = POLLOUT}};
    const struct timespec t = {.tv_sec = (time_t)(timeout / ASYM_SEC), .tv_nsec = (long)(timeout % ASYM_SEC) * 1000};
    const struct timespec at_once = {.tv_sec = 0};
    if (ppoll(fds, current.stale ? 2 : 1, &t, mask) <= 0)
        return true;
    /* The kernel delivers a signal of mask only if ppoll finds no event, which keys in a stream would prevent for ever. */
    ppoll(NULL, 0, &at_once, mask);
    return !has_ended(fds[0].revents);
}

static uint32_t special_key(wint_t key)
{
    static const struct {
        wint_t curses;
        uint32_t key;
    } keys[] = {
        {KEY_UP, ASYM_TOP_KEY_UP},           {KEY_DOWN, ASYM_TOP_KEY_DOWN},           {KEY_PPAGE, ASYM_TOP_KEY_PAGE_UP},
        {KEY_NPAGE, ASYM_TOP_KEY_PAGE_DOWN}, {KEY_HOME, ASYM_TOP_KEY_HOME},           {KEY_END, ASYM_TOP_KEY_END},
        {KEY_ENTER, ASYM_TOP_KEY_ENTER},     {KEY_BACKSPACE, ASYM_TOP_KEY_BACKSPACE},
    };
    for (size_t i = 0; i < ASYM_LENGTH(keys); i++)
        if (keys[i].curses == key)
            return keys[i].key;
    /* No key of the screen: it only makes the caller draw again, which KEY_RESIZE asks for. */
    return 0;
}

uint32_t asym_top_screen_key(void)
{
    wint_t key;
    const int r = get_wch(&key);
    if (r == ERR)
        return ASYM_TOP_KEY_NONE;
    if (r == KEY_CODE_YES)
        return special_key(key);
    switch (key) {
    case '\r':
    case '\n':
        return ASYM_TOP_KEY_ENTER;
    case '\033':
        return ASYM_TOP_KEY_ESCAPE;
    case '\b':
    case 0x7f:
        return ASYM_TOP_KEY_BACKSPACE;
    default:
        return (uint32_t)key;
    }
}
