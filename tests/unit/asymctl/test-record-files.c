/* SPDX-License-Identifier: GPL-2.0-or-later */
/* FILE.part is always a new file that only its owner can read, whatever had that name before. */
#include <sys/stat.h>

#include "daemon/asymctl/record-files.h"
#include "support/tree.h"
#include "support/test.h"

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
    char text[16] = "";
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
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
