/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reason for the policy, and the sentence on a rule, name the user who has set it. */

#include "daemon/asymctl/wording.h"
#include "report/json.h"
#include "support/test.h"
#include "top/top.h"

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

TEST_MAIN
