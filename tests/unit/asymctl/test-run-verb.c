/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl run: the program runs even if files are missing, and asymctl exits with the status that env(1) would have. */
#include <sys/stat.h>

#include "support/shell.h"
#include "support/test.h"

static char top[] = "/tmp/asym-launch-XXXXXX";

static int make_file(const char *name, const char *text, mode_t mode)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", top, name);
    file_write(path, "%s", text);
    return chmod(path, mode);
}

static int make_programs(void **state)
{
    return mkdtemp(top) && make_file("plain", "exit 9\n", 0755) == 0 && make_file("data", "exit 9\n", 0644) == 0 &&
                   make_file("orphan", "#!/nonexistent/interpreter\n", 0755) == 0
               ? 0
               : -1;
}

static int remove_programs(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r '%s'", top);
    return system(command);
}

/* Runs a command in the directory of the programs, with $C for asymctl. Returns its status; ret receives standard error. */
static int run(const char *format, const char *command, char *ret, size_t size)
{
    char prefixed[512];
    snprintf(prefixed, sizeof prefixed, format, command);
    return shell_run(ret, size, "C='%s/daemon/asymctl'; PATH=/usr/bin:/bin; cd '%s'; { %s; } 2>&1 >/dev/null",
                     ASYM_TEST_BIN, top, prefixed);
}

static const char *const programs[] = {
    "true",
    "false",
    "sh -c 'exit 200'",
    "./plain",
    "./data",
    "data",
    "./orphan",
    "/",
    "./gone",
    "gone",
    "./data/below",
    "''",
    "env A=b true",
    "sh -c 'kill -TERM $$'",
};

TEST(the_status_is_that_of_env)
{
    static const char *const commands[] = {"$C run -- %s", "PATH=.:$PATH $C run -- %s",
                                           "$C run --tool=/nonexistent -- %s"};
    static const char *const as[] = {"env -- %s", "PATH=.:$PATH env -- %s", "env -- %s"};
    char text[1024], want[1024];
    for (size_t w = 0; w < ASYM_LENGTH(commands); w++)
        for (size_t i = 0; i < ASYM_LENGTH(programs); i++) {
            const int status = run(commands[w], programs[i], text, sizeof text),
                      wanted = run(as[w], programs[i], want, sizeof want);
            if (status != wanted)
                fail_msg("%s: %s: %d, and env: %d", commands[w], programs[i], status, wanted);
        }
}

TEST(a_missing_signal_is_reported_once)
{
    char text[1024];
    assert_int_equal(run("$C run --tool=/nonexistent/tool.so -- %s", "sh -c 'exit 7'", text, sizeof text), 7);
    assert_non_null(strstr(text, "/nonexistent/tool.so: No such file or directory; the program runs without"));
    assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
    /* Without the tool, asymctl changes nothing else in the environment. */
    run("unset OMP_TOOL OMP_TOOL_LIBRARIES LD_PRELOAD; $C run --gcc --tool=/nonexistent -- %s",
        "sh -c 'echo ${OMP_TOOL-}${OMP_TOOL_LIBRARIES-}${LD_PRELOAD-}. >&2'", text, sizeof text);
    assert_string_equal(strchr(text, '\n'), "\n.\n");
}

TEST(the_reason_why_it_cannot_be_executed_is_reported)
{
    static const struct {
        const char *program, *words;
    } rows[] = {
        {"gone", "asymctl: gone: no such program\n"},
        {"./data", "asymctl: ./data: Permission denied\n"},
        {"./orphan", "asymctl: ./orphan: the interpreter that it names is missing\n"},
        {"\"$(printf '\\033x')\"", "asymctl: \\x1bx: no such program\n"},
    };
    char text[1024];
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        run("$C run --tool=/dev/null -- %s", rows[i].program, text, sizeof text);
        assert_string_equal(text, rows[i].words);
    }
}

TEST_MAIN_WITH(make_programs, remove_programs)
