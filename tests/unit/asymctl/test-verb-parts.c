/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of verbs: names of users in the reason for the policy and in the sentence on a rule, signals, FILE.part, no terminal. */
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/asymctl/long-verb.h"
#include "daemon/asymctl/record-files.h"
#include "daemon/asymctl/wording.h"
#include "report/json.h"
#include "support/process.h"
#include "support/shell.h"
#include "support/tree.h"
#include "top/top.h"
#include "support/test.h"

typedef const char *name_fn(const char *text, char *buf, size_t size);

struct row {
    const char *text, *shown; /* shown NULL: unchanged */
};

static void assert_named(name_fn *name, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[128];
        assert_string_equal(name(rows[i].text, text, sizeof text), rows[i].shown ? rows[i].shown : rows[i].text);
    }
}

TEST(the_user_who_set_the_policy_has_a_name_where_the_machine_knows_it)
{
    static const struct row rows[] = {
        {"set by uid 0 over the bus", "set by root (uid 0) over the bus"},
        {"set by uid 4294967294 over the bus", NULL},
        {"set by uid 4294967296 over the bus", NULL},
        {"set by uid 99999999999999999999999 over the bus", NULL},
        {"set by uid x over the bus", NULL},
        {"set by uid -0 over the bus", NULL},
        {"set by uid 0", NULL},
        {"spin (3): set by uid 0 over the bus", NULL},
        {"set by the configuration", NULL},
        {"the default", NULL},
        {"", NULL},
    };
    assert_named(asym_name_user_of_policy, rows, ASYM_LENGTH(rows));
}

TEST(an_application_has_the_name_of_its_program_or_its_cgroup)
{
    static const struct {
        int pid, processes;
        const char *comm, *cgroup, *shown;
    } rows[] = {
        {7, 1, "gzip", "", "gzip"},
        {7, 9, "make", "", "make, 9 processes"},
        {0, 1, "sshd", "/a.slice/ssh.service", "ssh.service"},
        {0, 3, "sshd", "/a.slice/ssh.service", "ssh.service, 3 processes"},
        {0, 2, "sshd", "/", "sshd, 2 processes"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char text[128];
        ASYM_AUTO_JSON json_t *app = json_pack("{s:i, s:i, s:s, s:s}", "pid", rows[i].pid, "processes",
                                               rows[i].processes, "comm", rows[i].comm, "cgroup", rows[i].cgroup);
        assert_string_equal(asym_name_app(app, text, sizeof text), rows[i].shown);
        assert_null(strstr(asym_top_name(app), " processes"));
    }
}

/* Programs can have the names "set by uid 0" and "A rule that uid", which has as many bytes as a name can have. */
TEST(the_user_who_set_a_rule_has_a_name_and_a_program_keeps_its_own)
{
    static const struct row rows[] = {
        {"A rule that uid 0 has set (asymctl set 3 slow)", "A rule that root (uid 0) has set (asymctl set 3 slow)"},
        {"A rule that a user has set (asymctl set 3 slow)", NULL},
        {"A rule that uid 4294967294 has set (asymctl set 3 slow)", NULL},
        {"set by uid 0 (300) is idle.", NULL},
        {"set by uid 0 over the bus", NULL},
        {"A rule that uid (300) is idle.", NULL},
        {"A rule that uid 0 is idle.", NULL},
        {"The rule \"A rule that uid 0 has set (asymctl set\" matches.", NULL},
        {"", NULL},
    };
    assert_named(asym_name_user_of_rule, rows, ASYM_LENGTH(rows));
}

/* -- asymctl top in a terminal that cannot show it: it says why, and how to see a frame nevertheless -- */

/* Runs asymctl top without asymd. term: the value of TERM; NULL: none. Returns its exit status; ret: the output. */
static int run_top(const char *term, char *ret, size_t size)
{
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    assert_int_equal(term ? setenv("TERM", term, 1) : unsetenv("TERM"), 0);
    return shell_run_in_terminal("top", ret, size);
}

/* Puts one space in place of each line break and indentation. */
static void unwrap(char *text)
{
    char *out = text;
    for (const char *at = text; *at; at++)
        if (!strchr(" \r\n", *at))
            *out++ = *at;
        else if (out > text && out[-1] != ' ')
            *out++ = ' ';
    *out = '\0';
}

TEST(a_terminal_that_cannot_is_told_why_before_asymd_is_asked)
{
#define ONCE "; asymctl top --once prints one frame as text"
    static const struct {
        const char *term, *says;
    } rows[] = {
        {"dumb", "asymctl: a terminal with TERM=dumb cannot move its cursor" ONCE},
        {"no-such-terminal", "asymctl: no terminal TERM=no-such-terminal is known here" ONCE},
        {"\033[2J", "asymctl: no terminal TERM=\\x1b[2J is known here" ONCE},
        {"", "asymctl: TERM does not say which terminal this is" ONCE},
        {NULL, "asymctl: TERM does not say which terminal this is" ONCE},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char text[1024];
        const int status = run_top(rows[i].term, text, sizeof text);
        unwrap(text);
        if (status != 2 || strncmp(text, rows[i].says, strlen(rows[i].says)) != 0)
            fail_msg("with TERM=%s asymctl top ended in %d and said: %s", rows[i].term, status, text);
    }
}

/* In a terminal that can, it goes on to ask asymd, which does not run here. */
TEST(a_terminal_that_can_is_accepted)
{
    char text[1024];
    assert_int_equal(run_top("vt100", text, sizeof text), 5);
    unwrap(text);
    if (!strstr(text, "asymctl: asymd is not running."))
        fail_msg("asymctl top said: %s", text);
}

/* -- the signals that end a verb of asymctl early; each row runs in a child, because the flag stays set -- */

/* Runs it in a child with the default actions of these signals. Returns the status as of wait(2). */
static int in_child(int (*run)(int signal), int signal)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    int status;
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        for (size_t i = 0; i < ASYM_LENGTH(ends); i++)
            sigaction(ends[i], &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        _exit(run(signal));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int caught_once(int signal)
{
    asym_interruption_catch();
    if (asym_interrupted)
        return 2;
    raise(signal);
    return asym_interrupted ? 0 : 3;
}

static int caught_twice(int signal)
{
    const int r = caught_once(signal);
    raise(signal);
    return r != 0 ? r : 4;
}

TEST(the_first_signal_is_a_flag_and_the_second_ends_the_verb)
{
    static const int ends[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < ASYM_LENGTH(ends); i++) {
        assert_int_equal(in_child(caught_once, ends[i]), 0);
        const int status = in_child(caught_twice, ends[i]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == ends[i]);
    }
    const int status = in_child(caught_once, SIGHUP);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
}

/* Twice: the handler stays. */
static int held(int signal)
{
    const struct timespec at_once = {.tv_sec = 0};
    sigset_t waiting;
    asym_interruption_block(signal == SIGHUP, &waiting);
    for (int i = 0; i < 2; i++) {
        raise(signal);
        if (asym_interrupted != (i > 0) || ppoll(NULL, 0, &at_once, &waiting) != -1 || !asym_interrupted)
            return 2 + i;
    }
    return 0;
}

/* Only the wait receives it. */
TEST(a_held_signal_comes_in_the_wait)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < ASYM_LENGTH(ends); i++)
        assert_int_equal(in_child(held, ends[i]), 0);
}

static volatile sig_atomic_t calls;

static void count_call(void)
{
    calls++;
}

/* An admitted signal comes at once, and the caller's function with it; later ones are held again. */
static int admitted(int signal)
{
    sigset_t waiting;
    asym_interruption_block(false, &waiting);
    asym_interruption_unblock(count_call);
    raise(signal);
    if (calls != 1 || !asym_interrupted)
        return 2;
    asym_interruption_block_again();
    raise(signal);
    return calls == 1 ? 0 : 3;
}

TEST(a_call_that_may_block_admits_a_held_signal)
{
    assert_int_equal(in_child(admitted, SIGTERM), 0);
    assert_int_equal(in_child(admitted, SIGINT), 0);
}

static int held_without_hangup(int signal)
{
    sigset_t waiting;
    asym_interruption_block(false, &waiting);
    raise(signal);
    return 2;
}

TEST(a_verb_that_does_not_catch_a_hangup_ends_by_it)
{
    const int status = in_child(held_without_hangup, SIGHUP);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
}

/* -- FILE.part is always a new file that only its owner can read, whatever had that name before -- */

struct place {
    struct tree tree;
    char file[96], part[96], other[96];
};

static void make_place(struct place *p)
{
    tree_make(&p->tree);
    snprintf(p->file, sizeof p->file, "%s/f", p->tree.path);
    snprintf(p->part, sizeof p->part, "%s/f.part", p->tree.path);
    snprintf(p->other, sizeof p->other, "%s/other", p->tree.path);
    tree_write(&p->tree, "other", "kept");
}

static void make_nothing(const struct place *p)
{
}

static void make_readable(const struct place *p)
{
    tree_write(&p->tree, "f.part", "old");
    assert_int_equal(chmod(p->part, 0666), 0);
}

static void make_link(const struct place *p)
{
    assert_int_equal(symlink(p->other, p->part), 0);
}

static void make_hard_link(const struct place *p)
{
    assert_int_equal(link(p->other, p->part), 0);
}

static void make_fifo(const struct place *p)
{
    assert_int_equal(mkfifo(p->part, 0666), 0);
}

static void assert_content(const char *path, const char *wanted)
{
    char text[16];
    file_read(path, text, sizeof text);
    assert_string_equal(text, wanted);
}

TEST(what_had_the_name_is_not_written_to)
{
    static void (*const makers[])(const struct place *) = {make_nothing, make_readable, make_link, make_hard_link,
                                                           make_fifo};
    for (size_t i = 0; i < ASYM_LENGTH(makers); i++) {
        struct place p;
        struct asym_part_file f;
        struct stat st;
        make_place(&p);
        makers[i](&p);
        assert_int_equal(asym_part_file_open(&f, p.file, NULL), 0);
        fputs("new", f.out);
        assert_int_equal(asym_part_file_finish(&f, NULL), 0);
        asym_fclose_p(&f.out);
        assert_int_equal(lstat(p.file, &st), 0);
        assert_int_equal(st.st_mode, S_IFREG | 0600);
        assert_int_equal(st.st_nlink, 1);
        assert_content(p.file, "new");
        assert_content(p.other, "kept");
        assert_int_not_equal(access(p.part, F_OK), 0);
        tree_remove(&p.tree);
    }
}

TEST(the_earlier_file_stays_as_file_old)
{
    struct place p;
    char old[sizeof p.file + 8];
    make_place(&p);
    snprintf(old, sizeof old, "%s.old", p.file);
    for (int i = 0; i < 3; i++) {
        struct asym_part_file f;
        assert_int_equal(asym_part_file_open(&f, p.file, NULL), 0);
        fprintf(f.out, "%d", i);
        assert_int_equal(asym_part_file_finish(&f, NULL), 0);
        assert_int_equal(f.kept, i > 0);
        asym_fclose_p(&f.out);
    }
    assert_content(p.file, "2");
    assert_content(old, "1");
    tree_remove(&p.tree);
}

TEST(a_file_that_is_not_regular_is_not_replaced)
{
    struct place p;
    struct asym_part_file f;
    struct asym_error err = {""};
    make_place(&p);
    assert_int_equal(symlink("/dev/null", p.file), 0);
    assert_int_equal(asym_part_file_open(&f, p.file, &err), -EINVAL);
    assert_non_null(strstr(err.text, "is not a regular file"));
    asym_fclose_p(&f.out);
    assert_int_not_equal(access(p.part, F_OK), 0);
    tree_remove(&p.tree);
}

TEST(a_file_that_cannot_be_removed_is_reported)
{
    struct place p;
    struct asym_part_file f;
    struct asym_error err = {""};
    make_place(&p);
    tree_mkdir(&p.tree, "f.part");
    assert_true(asym_part_file_open(&f, p.file, &err) < 0);
    assert_non_null(strstr(err.text, "cannot remove"));
    asym_fclose_p(&f.out);
    tree_remove(&p.tree);
}

TEST_MAIN
