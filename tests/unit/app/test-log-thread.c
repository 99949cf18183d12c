/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines about a thread in the log, the journal's fields of one, and the levels. */
#include <syslog.h>

#include "app/log.h"
#include "base/mask.h"
#include "support/test.h"

static const struct asym_reason why = {.text = "because of %g"};

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* Users can provoke lines about threads. For classes, the limit for messages of one kind would be one for all applications. */
TEST(the_log_limits_lines_about_threads_and_writes_each_about_a_class)
{
    struct asym_task task = {.id = {.tid = 12, .tgid = 11}};
    const struct asym_log_thread line = {.task = &task, .reason = &why, .cpu = -1};
    struct asym_log log;
    static char text[8192];
    FILE *file = tmpfile();
    const int own = dup(STDERR_FILENO);
    assert_non_null(file);
    assert_true(own >= 0);
    asym_log_init(&log);
    dup2(fileno(file), STDERR_FILENO);
    for (int i = 0; i < 2 * ASYM_LOG_LIMIT_MESSAGES; i++) {
        asym_log_event(&log, LOG_INFO, &line, "program %d is serial", i);
        asym_log_thread(&log, LOG_INFO, &line, "left alone");
    }
    asym_log_done(&log);
    dup2(own, STDERR_FILENO);
    close(own);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(count(text, "asymd: program"), 2 * ASYM_LOG_LIMIT_MESSAGES);
    assert_int_equal(count(text, "asymd: left alone"), ASYM_LOG_LIMIT_MESSAGES);
    assert_int_equal(count(text, "more messages like this were left out"), 1);
}

TEST(a_line_about_a_thread_has_the_fields_that_are_known)
{
    char fields[ASYM_LOG_FIELDS][ASYM_LOG_FIELD_SIZE];
    struct asym_task task = {.id = {.tid = 12, .tgid = 11}, .comm = "a\nb"};
    struct asym_mask mask = {.w = {0xf0}};
    struct asym_log_thread line = {.task = &task, .class = ASYM_CLASS_SP, .cpu = -1};
    static const char *const least[] = {"ASYM_PID=11", "ASYM_TID=12", "ASYM_COMM=a\\x0ab", "ASYM_CLASS=SP"};
    static const char *const more[] = {"ASYM_POLICY=pa", "ASYM_REASON=because of 3", "ASYM_CPU=5", "ASYM_MASK=4-7"};
    assert_int_equal(asym_log_fields(&line, fields), ASYM_LENGTH(least));
    for (size_t i = 0; i < ASYM_LENGTH(least); i++)
        assert_string_equal(fields[i], least[i]);
    line.policy = "pa";
    line.reason = &why;
    line.figure[0] = 3;
    line.cpu = 5;
    line.mask = &mask;
    assert_int_equal(asym_log_fields(&line, fields), ASYM_LENGTH(least) + ASYM_LENGTH(more));
    for (size_t i = 0; i < ASYM_LENGTH(more); i++)
        assert_string_equal(fields[ASYM_LENGTH(least) + i], more[i]);
}

/* The level is the position of the word in the row of asymd.log_level. */
TEST(the_levels_are_those_of_syslog)
{
    static const int levels[] = {LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG};
    struct asym_log log = {.level = 0};
    for (int i = 0; i < (int)ASYM_LENGTH(levels); i++) {
        asym_log_set_level(&log, i);
        assert_int_equal(log.level, levels[i]);
    }
}

TEST_MAIN
