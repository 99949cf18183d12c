/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The chain of observers (linux/observe/observer.h), and the table of <asym/observers.def>. */

#include "linux/observe/observer.h"
#include "support/test.h"

/* A source around another one: it adds one process to what the inner one counts, and notes that it was closed. */
struct link {
    struct asym_source source;
    char letter;
};

static char closed[8], left_out[64];

static int link_next(struct asym_source *source, struct asym_snapshot *ret)
{
    const struct link *l = (const struct link *)source;
    *ret = (struct asym_snapshot){.machine = NULL};
    if (source->inner)
        source->inner->next(source->inner, ret);
    ret->coverage.n_procs = ret->coverage.n_procs * 10 + (uint32_t)(l->letter - 'a' + 1);
    return 1;
}

static void link_close(struct asym_source *source)
{
    strncat(closed, &((struct link *)source)->letter, 1);
    free(source);
}

static int open_link(char letter, struct asym_source **ret)
{
    struct link *l = calloc(1, sizeof *l);
    assert_non_null(l);
    *l = (struct link){.source = {.next = link_next, .close = link_close}, .letter = letter};
    *ret = &l->source;
    return 0;
}

#define OPEN(letter)                                                                                                   \
    static int open_##letter(const struct asym_observer_context *context, struct asym_source *inner,                   \
                             struct asym_source **ret, struct asym_error *err)                                         \
    {                                                                                                                  \
        (void)context;                                                                                                 \
        (void)inner;                                                                                                   \
        (void)err;                                                                                                     \
        return open_link(#letter[0], ret);                                                                             \
    }
OPEN(a)
OPEN(b)
OPEN(c)

static int cannot_open(const struct asym_observer_context *context, struct asym_source *inner, struct asym_source **ret,
                       struct asym_error *err)
{
    return asym_fail(err, -EPERM, "no BTF");
}

static const struct asym_observer_entry a = {.name = "a", .open = open_a}, b = {.name = "b", .open = open_b},
                                        c = {.name = "c", .open = open_c}, none = {.name = "bpf", .open = cannot_open};

static void note_absent(void *ctx, const char *name, const char *why)
{
    assert_ptr_equal(ctx, left_out);
    snprintf(left_out, sizeof left_out, "%s: %s", name, why);
}

static int open_chain(const struct asym_observer_entry *const *entries, size_t n, struct asym_observers *ret,
                      struct asym_error *err)
{
    const struct asym_observer_context context = {.procfs = NULL};
    closed[0] = left_out[0] = '\0';
    return asym_observers_open(entries, n, &context, note_absent, left_out, ret, err);
}

static uint32_t seen_by(struct asym_source *source)
{
    struct asym_snapshot s;
    assert_int_equal(source->next(source, &s), 1);
    return s.coverage.n_procs;
}

TEST(a_later_row_is_put_around_the_earlier_ones)
{
    const struct asym_observer_entry *const rows[] = {&a, &b, &c};
    struct asym_observers o;
    struct asym_error err = {""};
    assert_int_equal(open_chain(rows, ASYM_LENGTH(rows), &o, &err), 0);
    assert_int_equal(seen_by(o.source), 123);
    assert_ptr_equal(o.source, o.links[2]);
    assert_int_equal(seen_by(o.links[0]), 1);
    assert_string_equal(left_out, "");
    asym_observers_close(&o);
    assert_string_equal(closed, "cba");
    assert_null(o.source);
}

TEST(an_observer_that_cannot_run_is_left_out_with_its_reason)
{
    const struct asym_observer_entry *const rows[] = {&a, &none, &c};
    struct asym_observers o;
    struct asym_error err = {""};
    assert_int_equal(open_chain(rows, ASYM_LENGTH(rows), &o, &err), 0);
    assert_string_equal(left_out, "bpf: no BTF");
    assert_string_equal(err.text, "");
    assert_null(o.links[1]);
    assert_int_equal(seen_by(o.source), 13);
    asym_observers_close(&o);
    assert_string_equal(closed, "ca");
}

TEST(without_the_first_row_there_is_no_chain)
{
    const struct asym_observer_entry *const rows[] = {&none, &b};
    struct asym_observers o = {.source = NULL};
    struct asym_error err = {""};
    assert_int_equal(open_chain(rows, ASYM_LENGTH(rows), &o, &err), -EPERM);
    assert_string_equal(err.text, "no BTF");
    assert_string_equal(left_out, "");
    assert_null(o.source);
    asym_observers_close(&o);
    assert_string_equal(closed, "");
}

TEST(each_row_of_the_table_has_an_observer_of_its_name)
{
    static const char *const names[] = {
#define ASYM_OBSERVER(NAME, name) #name,
#include <asym/observers.def>
#undef ASYM_OBSERVER
    };
    for (size_t i = 0; i < ASYM_N_OBSERVERS; i++) {
        assert_string_equal(asym_observers[i]->name, names[i]);
        assert_non_null(asym_observers[i]->open);
    }
    assert_int_equal(ASYM_OBSERVER_PROCFS, 0);
}

TEST_MAIN
