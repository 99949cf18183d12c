/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each bad file gives a message with file and line, and changes nothing. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "config/settings.h"
#include "support/tree.h"
#include "support/generate.h"
#include "support/test.h"

struct fixture {
    struct tree tree;
    struct asym_settings *s;
    char file[128];
};

/* Begins anew, with a rule of a file that was read before: after an error the settings are of no use. */
static void begin(struct fixture *f)
{
    char path[160];
    snprintf(path, sizeof path, "%s/before.conf", f->tree.path);
    asym_settings_free(f->s);
    assert_int_equal(asym_settings_new(&f->s), 0);
    assert_int_equal(asym_settings_load(f->s, path, true, NULL), 0);
}

static void set_up(struct fixture *f)
{
    tree_make(&f->tree);
    snprintf(f->file, sizeof f->file, "%s/asymd.conf", f->tree.path);
    tree_write(&f->tree, "before.conf", "[asymd]\nduration = 2s\n[rule here]\nmatch_uid=1\naction=slow\n");
    tree_write(&f->tree, "asymd.conf", "%s", "");
    begin(f);
}

static void tear_down(struct fixture *f)
{
    asym_settings_free(f->s);
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, set_up, tear_down)

/* Returns the message behind "FILE:LINE: " after checking file and line. */
static const char *refused(struct fixture *f, const void *bytes, size_t len, unsigned line, struct asym_error *err)
{
    char place[160];
    tree_write_bytes(&f->tree, "asymd.conf", bytes, len);
    err->text[0] = '\0';
    begin(f);
    assert_int_equal(asym_settings_load(f->s, f->file, true, err), -EINVAL);
    int n = snprintf(place, sizeof place, "%s:%u: ", f->file, line);
    if (strncmp(err->text, place, (size_t)n) != 0)
        fail_msg("not in line %u: %s", line, err->text);
    return err->text + n;
}

TEST_F(each_bad_line_is_named_with_what_is_accepted)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *words;
    } rows[] = {
        /* unknown names; the message suggests the nearest right name */
        {"[asymd]\nintervall = 1ms\n", 2, "unknown key 'intervall' in [asymd] (did you mean 'interval'?)"},
        {"[asymd]\nINTERVALS = 1ms\n", 2, "did you mean 'interval'?"},
        {"[asymd]\n\n[clasify]\nhysteresis = 2\n", 3, "unknown section [clasify] (did you mean 'classify'?)"},
        {"[asmyd]\n", 1, "did you mean 'asymd'?"},
        {"[policy.papa]\n", 1, "did you mean 'policy.pa'?"},
        {"[rules \"a\"]\n", 1,
         "accepted are asymd, classify, enforce, counters, machine, rtx, asymmetry, policy, policy.NAME, rule NAME"},
        {"[counters]\nipc = yes\n", 2, "unknown key 'ipc' in [counters]"},
        {"[policy]\nsp_boost = 1\n", 2, "unknown key 'sp_boost' in [policy]"},
        {"[policy.rr]\nsp_boost = 1\n", 2, "unknown key 'sp_boost' in [policy.rr]; accepted here is none"},
        {"[enforce]\nhysteresis = 2\n", 2, "it belongs in [classify]"},
        {"[zzzzzzzzzz]\n", 1, "unknown section [zzzzzzzzzz]; accepted"},
        /* values */
        {"[asymd]\ninterval = 100\n", 2, "asymd.interval: '100' is not accepted; accepted is a time with unit"},
        {"[asymd]\ninterval = 100 m\n", 2, "(us, ms, s, min, h) from 1ms to 60s"},
        {"[asymd]\ninterval = 999us\n", 2, "from 1ms to 60s"},
        {"[asymd]\ninterval =\n", 2, "from 1ms to 60s"},
        {"[asymd]\ncpu_budget = 0\n", 2, "a number from 0.01 to 100"},
        {"[asymd]\ncpu_budget = 1e1\n", 2, "a number from 0.01 to 100"},
        {"[asymd]\ngroup = cgruop\n", 2, "did you mean 'cgroup'?); accepted is process, cgroup or job"},
        {"[classify]\nestimator = auto\n", 2, "accepted is mean or instant"},
        {"[classify]\nhysteresis = -1\n", 2, "a whole number from 1 to 1000"},
        {"[classify]\nhysteresis = 4294967297\n", 2, "a whole number from 1 to 1000"},
        {"[asymmetry]\nmethod = cpufrq\n", 2, "(did you mean 'cpufreq'?); accepted is none, cpufreq"},
        {"[policy.pa]\nsp_boost = -21\n", 2, "from -20 to 19"},
        /* given twice */
        {"[asymd]\ninterval = 1ms\ninterval = 1ms\n", 3, "asymd.interval is given twice, first in line 2"},
        {"[asymd]\ninterval = 1ms\n[enforce]\n[asymd]\ninterval = 1ms\n", 5, "given twice, first in line 2"},
        /* lines that are no INI */
        {"interval = 1ms\n", 1, "a key before the first [section]"},
        {"[asymd]\ninterval\n", 2, "neither [section] nor KEY = VALUE"},
        {"[asymd]\ninterval ;= 1ms\n", 2, "neither [section] nor KEY = VALUE"},
        {"[asymd]\n= 1ms\n", 2, "unknown key ''"},
        {"[asymd\ninterval = 1ms\n", 1, "no ']'"},
        {"[asymd] interval = 1ms\n", 1, "text after the section's ']'"},
        {"[]\n", 1, "unknown section []"},
        {"[\n", 1, "no ']'"},
        {"[asymd]\r[enforce]\r", 1, "binary data"},
        {"# comment\n\n[asymd]\nfoo = 1\n[bar]\n", 4, "unknown key 'foo'"}, /* the first error, not the last */
        {"[asymd]\nnonsense\n[bar]\n", 2, "neither"},
        /* rules */
        {"[rule]\n", 1, "a rule needs a name; accepted is [rule \"NAME\"]"},
        {"[rule \"\"]\n", 1, "a rule needs a name"},
        {"[rule \"a]\n", 1, "a rule needs a name"},
        {"[rule \"a\" b]\n", 1, "a rule needs a name"},
        {"[rule a]\nmatch_com = x\n", 2, "unknown key 'match_com' in [rule] (did you mean 'match_comm'?"},
        {"[rule a]\nmatch_comm = x\naction = fsat\n", 3,
         "did you mean 'fast'?); accepted is steer, ignore, fast or slow"},
        {"[rule a]\nmatch_comm =\n", 2, "match_comm is empty"},
        {"[rule a]\nmatch_comm = ld averyverylongprogramname z\n", 2,
         "match_comm 'averyverylongprogramname' matches no process: names have 15 bytes at most, so this one is "
         "'averyverylongpr'"},
        {"[rule a]\nmatch_comm = sixteen-letters-*\n", 2, "so this one is 'sixteen-letters'"},
        {"[rule a]\nmatch_uid = root\n", 2, "match_uid 'root' is not accepted; accepted are user IDs"},
        {"[rule a]\nmatch_uid = 1 -1\n", 2, "accepted are user IDs"},
        {"[rule a]\nmatch_uid = 4294967295\n", 2, "accepted are user IDs"},
        {"[rule a]\nmatch_uid = 1\nmatch_uid = 1\n", 3, "match_uid is given twice"},
        {"[rule a]\naction = slow\naction = fast\n", 3, "action is given twice"},
        {"[rule a]\ncpus = 1-\n", 2,
         "cpus: '1-' is not accepted; accepted is a list of CPUs below 1024, such as 0-3,8, or big-cache or "
         "high-clock"},
        {"[rule a]\ncpus = big cache\n", 2, "cpus: 'big cache' is not accepted"},
        {"[rule a]\ncpus = 1024\n", 2, "cpus: '1024' is not accepted"},
        {"[rule a]\ncpus =\n", 2, "cpus: '' is not accepted"},
        {"[rule a]\ncpus = 1\ncpus = 2\n", 3, "cpus is given twice"},
        {"[rule a]\nnice = 20\n", 2, "nice: '20' is not accepted; accepted is a whole number from -20 to 19"},
        {"[rule a]\nnice = low\n", 2, "nice: 'low' is not accepted"},
        {"[rule a]\nnice = 1\nnice = 1\n", 3, "nice is given twice"},
        {"[rule a]\npolicy_class = seriel\n", 2,
         "policy_class: 'seriel' is not accepted (did you mean 'serial'?); accepted is auto, serial or parallel"},
        {"[rule a]\npolicy_class = auto\npolicy_class = auto\n", 3, "policy_class is given twice"},
        {"\n[rule a]\nmatch_comm = x\naction = ignore\nnice = 3\n", 2, "ignores the process, so nice has no effect"},
        {"\n[rule a]\ncpus = 3\n", 2, "the rule \"a\" has no match"},
        {"[asymd]\ndefault = none\n", 2, "asymd.default: 'none' is not accepted; accepted is steer or ignore"},
        {"[asymd]\nlog_level = verbose\n", 2, "accepted is error, warning, notice, info or debug"},
        {"\n[rule a]\naction = slow\n", 2, "the rule \"a\" has no match"},
        {"\n[rule a]\nmatch_exe = /x\n", 2, "the rule \"a\" has no action"},
        {"[rule a]\nmatch_exe = a firefox\n", 2,
         "match_exe 'a' matches no process: paths begin with '/', so write '*/a'"},
        {"[rule a]\nmatch_exe = /usr/lib/steam/\n", 2, "so write '/usr/lib/steam/*'"},
        {"[rule a]\nmatch_cgroup = / user.slice/*\n", 2, "match_cgroup 'user.slice/*' matches no process"},
        {"[rule a]\nmatch_comm = ok \"Pianoteq STAGE\n", 2, "the quotes in '\"Pianoteq' are not around a word"},
        {"[rule a]\nmatch_comm = x\"y\"\n", 2, "one with a space in double quotes; ? matches a quote"},
        {"[rule a]\nmatch_cmdline = \"a ; b\"\n", 2, "are not around a word"},
        {"[rule a]\nmatch_comm = \"\"\n", 2, "nothing between the quotes"},
        {"[rule a]\nmatch_comm = Pianoteq\\ STAGE\n", 2, "a backslash keeps no space; write the name in double quotes"},
        {"[rule a]\nmatch_comm = \"Pianoteq STAGE 12\"\n", 2, "so this one is 'Pianoteq STAGE '"},
        {"\n\n[rule a]\n", 3, "the rule \"a\" has no match"},
        {"[rule a]\nmatch_exe=/x\naction=fast\n[rule \"a\"]\n", 4, "there is a rule \"a\" already"},
        {"[rule here]\n", 1, "there is a rule \"here\" already"}, /* in a file that was read before */
        {"[rule aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\n", 1, "the rule's name is too long; accepted are 40"},
        {"[rule aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\n", 1, "longer than 48 bytes"},
    };
    struct asym_error err;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const char *text = refused(f, rows[i].text, strlen(rows[i].text), rows[i].line, &err);
        if (!strstr(text, rows[i].words))
            fail_msg("'%s' does not hold '%s'", text, rows[i].words);
    }
}

TEST_F(binary_junk_is_called_so)
{
    static const char nul[] = "[asymd]\nint\0erval = 1ms\n", elf[] = "\177ELF\2\1\1\0\0\0",
                      escape[] = "[asymd]\n\x1b[2J=1\n";
    struct asym_error err;
    assert_string_equal(refused(f, nul, sizeof nul - 1, 2, &err), "binary data; accepted is text");
    assert_string_equal(refused(f, elf, sizeof elf - 1, 1, &err), "binary data; accepted is text");
    assert_string_equal(refused(f, escape, sizeof escape - 1, 2, &err), "binary data; accepted is text");
}

TEST_F(bytes_that_are_not_utf8_are_shown_escaped)
{
    static const char text[] = "[asymd]\n\xff\xfe = 1\n";
    struct asym_error err;
    assert_non_null(strstr(refused(f, text, sizeof text - 1, 2, &err), "unknown key '\\xff\\xfe'"));
}

TEST_F(a_line_that_is_too_long_is_refused)
{
    char text[512] = "[asymd]\nstate_dir = /";
    struct asym_error err;
    size_t n = strlen(text);
    memset(text + n, 'x', ASYM_LENGTH(text) - n - 1);
    assert_non_null(strstr(refused(f, text, 8 + 191, 2, &err), "too long; accepted are 190 bytes"));
    assert_non_null(strstr(refused(f, text, 8 + 190, 2, &err), "the value is too long; accepted are 160 bytes"));
    assert_non_null(strstr(refused(f, text, 511, 2, &err), "too long; accepted are 190 bytes"));
    /* a value of 160 bytes is in force, uncut */
    tree_write_bytes(&f->tree, "asymd.conf", text, 8 + 12 + 160);
    begin(f);
    assert_int_equal(asym_settings_load(f->s, f->file, true, NULL), 0);
    assert_int_equal(strlen(f->s->daemon.state_dir), 160);
}

TEST_F(a_line_of_10_MB_is_refused_in_words)
{
    struct asym_error err = {""};
    size_t len = 10u << 20;
    ASYM_AUTO_FREE char *text = malloc(len);
    assert_non_null(text);
    memset(text, 'a', len);
    tree_write_bytes(&f->tree, "asymd.conf", text, len);
    assert_int_equal(asym_settings_load(f->s, f->file, true, &err), -EINVAL);
    assert_non_null(strstr(err.text, "larger than 1 MiB"));
    /* the largest file that asymd reads, in one line */
    assert_non_null(strstr(refused(f, text, 1u << 20, 1, &err), "too long; accepted are 190 bytes"));
}

TEST_F(what_is_no_file_is_refused)
{
    struct asym_error err = {""};
    char path[160];
    f->s->daemon.interval = 7;
    asym_settings_load_lenient(f->s, f->tree.path);
    asym_settings_load_lenient(f->s, "/dev/zero");
    assert_int_equal(f->s->daemon.interval, 7);
    assert_int_equal(asym_settings_load(f->s, f->tree.path, true, &err), -EINVAL);
    assert_non_null(strstr(err.text, "is a directory"));
    snprintf(path, sizeof path, "%s/fifo", f->tree.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(asym_settings_load(f->s, path, true, &err), -EINVAL);
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_int_equal(asym_settings_load(f->s, "/dev/zero", true, &err), -EINVAL);
    assert_non_null(strstr(err.text, "larger than 1 MiB"));
    snprintf(path, sizeof path, "%s/missing/asymd.conf", f->tree.path);
    assert_int_equal(asym_settings_load(f->s, path, true, &err), -ENOENT);
    assert_non_null(strstr(err.text, path));
    snprintf(path, sizeof path, "%s/asymd.conf/x", f->tree.path);
    assert_int_equal(asym_settings_load(f->s, path, true, &err), -ENOTDIR);
}

TEST_F(a_rules_d_that_is_a_file_is_an_error)
{
    struct asym_error err = {""};
    tree_write(&f->tree, "asymd.conf", "%s", "");
    tree_write(&f->tree, "rules.d", "%s", "");
    assert_int_equal(asym_settings_load(f->s, f->file, true, &err), -ENOTDIR);
    assert_non_null(strstr(err.text, "rules.d"));
}

/* Root can read any file, so a child that gives up root gives the answer. */
TEST_F(no_permission_is_an_error_and_not_a_default)
{
    struct asym_error err = {""};
    assert_int_equal(chmod(f->file, 0), 0);
    uid_t user = geteuid();
    if (user == 0) {
        assert_int_equal(chmod(f->tree.path, 0755), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    int r = asym_settings_load(f->s, f->file, false, &err);
    assert_int_equal(seteuid(user), 0);
    assert_int_equal(r, -EACCES);
    assert_non_null(strstr(err.text, "Permission denied"));
}

/* asymd reads the file, or refuses it with a printable message of one line that names the file. */
TEST_F(whatever_is_read_ends_in_settings_or_in_a_message)
{
    static const char *const words[] = {"[",
                                        "]",
                                        "asymd",
                                        "[asymd]\n",
                                        "[rule \"a\"]\n",
                                        "rule ",
                                        "=",
                                        " = ",
                                        "\n",
                                        "\r\n",
                                        "interval",
                                        "1ms",
                                        "policy",
                                        "match_comm = ",
                                        "action = ",
                                        "fast",
                                        "; x",
                                        " ;",
                                        "\"",
                                        "\xff",
                                        "\t",
                                        "-5",
                                        "[policy.pa]\n",
                                        "sp_boost",
                                        "%s%n",
                                        "*?[",
                                        ":",
                                        "\xef\xbb\xbf",
                                        "#",
                                        "auto\n",
                                        "9999999999999999999999",
                                        "[classify]\nhysteresis=",
                                        "state_dir=/"};
    struct gen seed = {.state = 20260101};
    /* The file is in memory: a file system that writes back truncated files takes 4 ms for each of these. */
    int fd = memfd_create("asymd.conf", MFD_CLOEXEC);
    assert_true(fd >= 0);
    snprintf(f->file, sizeof f->file, "/proc/self/fd/%d", fd);
    for (unsigned run = 0; run < 4000; run++) {
        char text[600];
        size_t n = 0;
        struct asym_error err = {""};
        while (n < 500 && gen_next(&seed) % 24 != 0) {
            const char *word = words[gen_next(&seed) % ASYM_LENGTH(words)];
            if (run % 4 == 0)
                text[n++] = (char)gen_next(&seed);
            else
                n += (size_t)snprintf(text + n, sizeof text - n, "%s", word);
        }
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, text, n, 0), n);
        begin(f);
        if (asym_settings_load(f->s, f->file, true, &err) == 0)
            continue;
        assert_int_equal(strncmp(err.text, f->file, strlen(f->file)), 0);
        for (const char *c = err.text; *c; c++)
            assert_true((unsigned char)*c >= ' ' && *c != 0x7f);
    }
    close(fd);
}

TEST_MAIN
