/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The exporter: its text and its address. tests/exporter.py has its socket and its answers over HTTP. */
#include <pwd.h>

#include "base/clock.h"
#include "daemon/exporter/exporter.h"
#include "support/fake-service.h"
#include "support/shell.h"
#include "support/test.h"

static bool has_no_name;
static int name_error;
static uid_t own_user;

WRAPPED(uid_t, getuid, void)
{
    return own_user;
}

WRAPPED(struct passwd *, getpwuid, uid_t uid)
{
    errno = has_no_name ? name_error : errno;
    return has_no_name ? NULL : __real_getpwuid(0);
}

/* The text is too old, as after a second. The new one counts for a second from its arrival. */
static void read_anew(struct asym_exporter_text *t)
{
    const asym_usec before = asym_clock_now();
    t->expiry = 0;
    assert_int_equal(asym_exporter_text_read(t), 0);
    assert_in_range(t->expiry, before + ASYM_EXPORTER_FRESH, asym_clock_now() + ASYM_EXPORTER_FRESH);
}

TEST(a_text_is_openmetrics_and_counts_for_a_second)
{
    ASYM_CLEANUP(asym_exporter_text_done) struct asym_exporter_text t = {.client = NULL};
    fake_service_start(FAKE_SERVICE_PLAIN);
    assert_int_equal(asym_exporter_text_read(&t), 0);
    assert_true(t.good);
    assert_non_null(strstr(t.text, "\nasymd_changes_total 1204\n"));
    assert_non_null(strstr(t.text, "\n# EOF\n"));
    assert_null(strstr(t.text, "bad name"));
    fake_service_stop();
    /* It does not ask again while the text is fresh. */
    const char *before = t.text;
    t.expiry = UINT64_MAX;
    assert_int_equal(asym_exporter_text_read(&t), 0);
    assert_ptr_equal(t.text, before);
    assert_true(t.good);
}

/* Without asymd: the bus daemon closes the connection of such a user in the same way. */
TEST(a_user_that_the_bus_does_not_know_is_told_the_remedy)
{
    ASYM_CLEANUP(asym_exporter_text_done) struct asym_exporter_text t = {.client = NULL};
    assert_int_equal(asym_exporter_text_read(&t), 0);
    assert_false(t.good);
    assert_null(strstr(t.text, "systemd-sysusers"));
    has_no_name = true;
    read_anew(&t);
    assert_false(t.good);
    assert_non_null(strstr(t.text, "does not know user 0, "));
    assert_non_null(
        strstr(t.text, "&& systemd-sysusers asymd-exporter.conf && systemctl start asymd-exporter.socket\n"));
    /* A name service that fails does not show that the user has no name. */
    name_error = EIO;
    read_anew(&t);
    assert_null(strstr(t.text, "systemd-sysusers"));
    /* The exporter sees the name of a user of DynamicUser=, the bus daemon does not. */
    has_no_name = false;
    static const struct {
        uid_t user;
        bool is_told;
    } rows[] = {{61183, false}, {61184, true}, {65519, true}, {65520, false}, {0, false}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        own_user = rows[i].user;
        has_no_name = false;
        read_anew(&t);
        assert_int_equal(strstr(t.text, "systemd-sysusers") != NULL, rows[i].is_told);
    }
}

/* asymd restarts between two scrapes: the old connection fails, and a new one answers. */
TEST(a_scrape_after_a_restart_of_asymd_has_its_text)
{
    ASYM_CLEANUP(asym_exporter_text_done) struct asym_exporter_text t = {.client = NULL};
    for (int i = 0; i < 2; i++) {
        fake_service_start(FAKE_SERVICE_PLAIN);
        assert_int_equal(t.client != NULL, i);
        read_anew(&t);
        assert_true(t.good);
        fake_service_stop();
    }
}

TEST(what_is_no_socket_has_an_unknown_address)
{
    char address[80];
    assert_string_equal(asym_exporter_address(STDIN_FILENO, address, sizeof address), "an unknown address");
}

/* Only clients that accept OpenMetrics get it, so the help does not name it. */
TEST(the_help_fits_80_columns)
{
    char text[4096];
    assert_int_equal(shell_run(text, sizeof text, "env -u COLUMNS '%s/daemon/asymd-exporter' --help", ASYM_TEST_BIN),
                     0);
    assert_has(text, "usage: asymd-exporter ");
    assert_null(strstr(text, "OpenMetrics"));
    assert_fits_in(text, 80);
}

TEST_MAIN
