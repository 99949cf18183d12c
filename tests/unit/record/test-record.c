/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reader gives back a record bit for bit; damaged and hostile records are refused with the place. */
#include <math.h>

#include "base/mask.h"
#include "config/settings.h"
#include "record/record-internal.h"
#include "record/record.h"
#include "support/record-fixture.h"
#include "support/rounds.h"
#include "support/test.h"

static FILE *open_bytes(const void *bytes, size_t len)
{
    static char nothing;
    /* fmemopen refuses an empty buffer. */
    FILE *in = len > 0 ? fmemopen((void *)(uintptr_t)bytes, len, "rb") : fmemopen(&nothing, 1, "rb");
    assert_non_null(in);
    if (len == 0)
        fgetc(in);
    return in;
}

/* The reading of a record: the result of the last next(), or of opening it, and what was said. */
struct reading {
    int result;
    size_t n;
    bool cut;
    char said[1024];
};

static struct reading read_all(const void *bytes, size_t len, const struct record_fixture *f)
{
    struct reading ret = {.n = 0};
    struct asym_record_reader *reader = NULL;
    struct asym_error err = {""};
    ASYM_AUTO_FCLOSE FILE *in = open_bytes(bytes, len);
    ret.result = asym_record_reader_new(in, "f", &reader, &err);
    snprintf(ret.said, sizeof ret.said, "%s", err.text);
    struct asym_snapshot s;
    struct asym_source *source = reader ? asym_record_reader_source(reader) : NULL;
    while (reader && (ret.result = source->next(source, &s)) > 0) {
        if (f && f->shown[ret.n]) {
            ASYM_AUTO_FREE char *shown = record_fixture_show(&s);
            assert_string_equal(shown, f->shown[ret.n]);
            assert_true(asym_record_reader_result(reader)->known);
        }
        ret.n++;
    }
    if (reader) {
        ret.cut = asym_record_reader_cut(reader) != NULL;
        snprintf(ret.said, sizeof ret.said, "%s",
                 ret.cut ? asym_record_reader_cut(reader) : asym_record_reader_error(reader));
    }
    asym_record_reader_free(reader);
    return ret;
}

TEST(what_was_recorded_is_read_again)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        ASYM_CLEANUP(record_fixture_done) struct record_fixture f = {0};
        const struct record_fixture_plan plan = {.seed = seed,
                                                 .threads = 1 + (unsigned)seed * 7,
                                                 .snapshots = 70,
                                                 .interval = 200 * ASYM_MSEC,
                                                 .policy = "pa",
                                                 .enforced = seed % 2 == 0,
                                                 .keep = true};
        record_fixture_make(&f, &plan);
        const struct reading r = read_all(f.bytes, f.len, &f);
        assert_int_equal(r.result, 0);
        assert_int_equal(r.n, f.n);
        assert_false(r.cut);
    }
}

TEST(a_machine_is_read_again_with_every_field)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct gen g = {seed};
        struct asym_machine from, to;
        ASYM_CLEANUP(asym_record_io_done) struct asym_record_io out = {.writing = true};
        gen_machine(&g, &from);
        if (seed % 3 == 0) {
            struct asym_mask slow = {0};
            asym_mask_set(&slow, (unsigned)asym_mask_next(&from.usable, 0));
            assert_int_equal(asym_machine_assume_slow(&from, &slow, 0.5), 0);
        }
        struct asym_machine copy = from;
        asym_record_machine(&out, &copy);
        assert_int_equal(out.error, 0);
        struct asym_record_io in = {.bytes = out.bytes, .size = out.used};
        asym_record_machine(&in, &to);
        assert_int_equal(in.error, 0);
        assert_int_equal(asym_record_io_left(&in), 0);
        assert_memory_equal(&from, &to, sizeof from);
    }
}

/* Reads a machine after one name in its bytes has become another of the same length. Returns the error. */
static int read_with_other_name(const struct asym_machine *m, const char *name, const char *other,
                                struct asym_machine *ret)
{
    struct asym_machine copy = *m;
    ASYM_CLEANUP(asym_record_io_done) struct asym_record_io out = {.writing = true};
    asym_record_machine(&out, &copy);
    unsigned char *at = memmem(out.bytes, out.used, name, strlen(name));
    assert_non_null(at);
    assert_int_equal(strlen(name), strlen(other));
    for (size_t i = 0; other[i] != '\0'; i++)
        at[i] = (unsigned char)other[i];
    struct asym_record_io in = {.bytes = out.bytes, .size = out.used};
    asym_record_machine(&in, ret);
    const int error = in.error;
    assert_true(error == 0 || strstr(in.fault, "does not know"));
    return error;
}

/* A version of asymd with more sources has other numbers, so the record has names. */
TEST(a_record_names_the_sources_of_speeds)
{
    struct gen g = {1};
    struct asym_machine m, read;
    gen_machine(&g, &m);
    for (unsigned c = 0; c < m.n_cpus; c++)
        m.cpus[c].origin = ASYM_ORIGIN_CPUFREQ;
    assert_int_equal(read_with_other_name(&m, "cpufreq", "cpufreq", &read), 0);
    assert_int_equal(read.cpus[0].origin, ASYM_ORIGIN_CPUFREQ);
    assert_int_equal(read_with_other_name(&m, "cpukinds", "unheard!", &read), 0);
    assert_int_equal(read_with_other_name(&m, "cpufreq", "unheard", &read), -EBADMSG);
    for (unsigned i = 0; i < ASYM_N_ORIGINS; i++)
        assert_true(strlen(asym_origin_name((enum asym_origin)i)) < 16);
}

TEST(the_head_is_read_again)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f = {0};
    struct asym_record_reader *reader;
    record_fixture_make(
        &f, &(struct record_fixture_plan){.seed = 3, .threads = 4, .snapshots = 2, .interval = 100000, .policy = "pa"});
    ASYM_AUTO_FCLOSE FILE *in = open_bytes(f.bytes, f.len);
    assert_int_equal(asym_record_reader_new(in, "f", &reader, NULL), 0);
    const struct asym_record_head *head = asym_record_reader_head(reader);
    assert_string_equal(head->policy, "pa");
    assert_string_equal(head->version, "0.1");
    assert_int_equal(head->began, 1700000000);
    assert_int_equal(head->interval, 100000);
    assert_int_equal(head->n_settings, 1);
    assert_string_equal(head->settings[0].name, "classify.amp_boost");
    assert_string_equal(head->settings[0].value, "1s");
    assert_int_equal(head->n_notes, 1);
    assert_string_equal(head->notes[0], "made by a test in C:\\tests");
    asym_record_reader_free(reader);
}

TEST(a_record_is_read_twice)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f = {0};
    struct asym_record_reader *reader;
    struct asym_snapshot s;
    record_fixture_make(&f, &(struct record_fixture_plan){
                                .seed = 5, .threads = 9, .snapshots = 60, .interval = 200000, .policy = "pa"});
    ASYM_AUTO_FCLOSE FILE *in = open_bytes(f.bytes, f.len);
    assert_int_equal(asym_record_reader_new(in, "f", &reader, NULL), 0);
    struct asym_source *source = asym_record_reader_source(reader);
    for (unsigned pass = 0; pass < 3; pass++) {
        size_t n = 0;
        while (n < f.n / (2 - pass % 2) && source->next(source, &s) > 0)
            n++;
        assert_int_equal(n, f.n / (2 - pass % 2));
        assert_int_equal(asym_record_reader_rewind(reader), 0);
    }
    asym_record_reader_free(reader);
}

/* A small record of several segments. */
static void make_small(struct record_fixture *f)
{
    record_fixture_make(f, &(struct record_fixture_plan){.seed = 11,
                                                         .threads = 6,
                                                         .snapshots = 14,
                                                         .interval = ASYM_SEC,
                                                         .policy = "pa",
                                                         .plain = true,
                                                         .keep = true});
}

TEST(every_truncation_is_noticed_and_what_came_before_is_read)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f = {0};
    size_t most = 0, cuts = 0;
    make_small(&f);
    for (size_t len = 0; len < f.len; len++) {
        const struct reading r = read_all(f.bytes, len, &f);
        assert_true(r.n >= most && r.n <= f.n);
        most = r.n;
        cuts += r.cut;
        assert_true(r.cut ? r.result == 0 : r.result == -EBADMSG);
        assert_non_null(strstr(r.said, "f: byte "));
    }
    /* Without the end alone, all snapshots are read. */
    assert_int_equal(most, f.n);
    assert_true(cuts > f.len / 2);
}

/* zstd ignores a bit in the header of each frame, and takes any copy of the same bytes: then all snapshots are the same. */
TEST(every_flipped_bit_is_refused_with_its_place_or_changes_nothing)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f = {0};
    size_t ignored = 0;
    make_small(&f);
    for (size_t i = 0; i < f.len * 8; i += asym_rounds_stride()) {
        f.bytes[i / 8] = (char)(f.bytes[i / 8] ^ 1 << i % 8);
        const struct reading r = read_all(f.bytes, f.len, &f);
        const bool unchanged = r.result == 0 && r.n == f.n && !r.cut;
        if (!unchanged && (r.result != -EBADMSG || r.cut || strncmp(r.said, "f: byte ", 8) != 0))
            fail_msg("bit %zu: result %d, said: %s", i, r.result, r.said);
        ignored += unchanged;
        f.bytes[i / 8] = (char)(f.bytes[i / 8] ^ 1 << i % 8);
    }
    assert_true(ignored < f.len * 8 / asym_rounds_stride() / 100);
}

TEST(bytes_after_the_end_are_refused)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f = {0};
    make_small(&f);
    ASYM_AUTO_FREE char *longer = malloc(f.len + 1);
    memcpy(longer, f.bytes, f.len);
    longer[f.len] = 0;
    const struct reading r = read_all(longer, f.len + 1, &f);
    assert_int_equal(r.result, -EBADMSG);
    assert_non_null(strstr(r.said, "goes on after the end"));
}

/* A record whose checksums are right. */
struct forged {
    char *bytes;
    size_t len;
    FILE *out;
};

static void forge(struct forged *f)
{
    const struct asym_record_head head = {.version = "0.1", .policy = "pa"};
    struct asym_record_writer *w;
    f->out = open_memstream(&f->bytes, &f->len);
    assert_non_null(f->out);
    assert_int_equal(asym_record_writer_new(f->out, &head, &w), 0);
    asym_record_writer_free(w);
}

static struct reading read_forged(struct forged *f)
{
    fclose(f->out);
    const struct reading r = read_all(f->bytes, f->len, NULL);
    free(f->bytes);
    return r;
}

TEST(an_end_with_another_number_of_snapshots_is_refused)
{
    const unsigned char end_of_five[] = {ASYM_RECORD_ITEM_END, 5};
    struct forged forged;
    forge(&forged);
    assert_int_equal(asym_record_write_segment(forged.out, end_of_five, sizeof end_of_five), 0);
    const struct reading r = read_forged(&forged);
    assert_int_equal(r.result, -EBADMSG);
    assert_non_null(strstr(r.said, "the number of snapshots is another"));
}

/* Reads a record as replay does: an engine steps on every snapshot. */
static int step_all(const struct asym_settings *settings, const char *bytes, size_t len)
{
    struct asym_record_reader *reader;
    struct asym_engine *engine;
    const struct asym_plan *plan;
    const struct asym_action *actions;
    struct asym_snapshot s;
    size_t n;
    ASYM_AUTO_FCLOSE FILE *in = open_bytes(bytes, len);
    assert_int_equal(asym_record_reader_new(in, "f", &reader, NULL), 0);
    const struct asym_policy *policy = asym_policy_find("pa");
    const struct asym_engine_config config = asym_settings_engine_config(settings, policy);
    assert_int_equal(asym_engine_new(&config, &engine), 0);
    struct asym_source *source = asym_record_reader_source(reader);
    int r;
    while ((r = source->next(source, &s)) > 0) {
        assert_int_equal(asym_engine_step(engine, &s, &plan, &actions, &n), 0);
        ASYM_AUTO_FREE struct asym_outcome *outcomes = calloc(n + 1, sizeof *outcomes);
        asym_engine_outcomes(engine, outcomes, n);
    }
    asym_engine_free(engine);
    asym_record_reader_free(reader);
    return r;
}

/* Finds the first segment of snapshots. */
static void content_of(const struct record_fixture *f, struct asym_record_content *content)
{
    ASYM_AUTO_FCLOSE FILE *in = open_bytes(f->bytes, f->len);
    assert_int_equal(asym_record_read_signature(in, "f", NULL), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(asym_record_read_segment(in, "f", content, NULL), 1);
}

/* The checksums protect against chance alone: here they are right, and the content is wrong. */
TEST(wrong_content_with_right_checksums_harms_nothing)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f = {0};
    struct asym_record_content content = {.at = 0};
    struct asym_settings *settings;
    size_t refused = 0;
    assert_int_equal(asym_settings_new(&settings), 0);
    make_small(&f);
    content_of(&f, &content);
    for (size_t i = 0; i < content.len * 3; i += asym_rounds_stride()) {
        static const unsigned char values[] = {0x00, 0x7f, 0xff};
        const unsigned char before = content.bytes[i / 3];
        content.bytes[i / 3] = values[i % 3];
        struct forged forged;
        forge(&forged);
        assert_int_equal(asym_record_write_segment(forged.out, content.bytes, content.len), 0);
        fclose(forged.out);
        const int r = step_all(settings, forged.bytes, forged.len);
        assert_true(r == 0 || r == -EBADMSG);
        refused += r < 0;
        free(forged.bytes);
        content.bytes[i / 3] = before;
    }
    assert_true(refused > content.len / asym_rounds_stride() / 4);
    asym_settings_free(settings);
    free(content.bytes);
}

TEST(a_header_that_wants_too_much_memory_is_refused)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f = {0};
    make_small(&f);
    struct asym_record_content content = {.at = 0};
    content_of(&f, &content);
    struct forged forged;
    forge(&forged);
    unsigned char *many = calloc(1, ASYM_RECORD_MAX_CONTENT + 1);
    assert_non_null(many);
    assert_int_equal(asym_record_write_segment(forged.out, many, ASYM_RECORD_MAX_CONTENT + 1), 0);
    const struct reading r = read_forged(&forged);
    assert_int_equal(r.result, -EBADMSG);
    assert_non_null(strstr(r.said, "more than a segment can have"));
    free(many);
    free(content.bytes);
}

/* Writes a segment that begins with a machine, and goes on as the caller says. */
static struct reading read_after_machine(void (*fill)(struct asym_record_io *io))
{
    ASYM_CLEANUP(asym_record_io_done) struct asym_record_io io = {.writing = true};
    struct asym_machine m;
    struct forged forged;
    gen_plain_machine(&m, 4, 2);
    asym_record_u64(&io, ASYM_RECORD_ITEM_MACHINE, 3);
    asym_record_machine(&io, &m);
    fill(&io);
    forge(&forged);
    assert_int_equal(asym_record_write_segment(forged.out, io.bytes, io.used), 0);
    return read_forged(&forged);
}

static void zeros(struct asym_record_io *io, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        asym_record_u64(io, 0, 0);
}

static void fill_empty_snapshot(struct asym_record_io *io, uint64_t now)
{
    asym_record_u64(io, ASYM_RECORD_ITEM_SNAPSHOT, 3);
    asym_record_u64(io, now, UINT64_MAX);
    zeros(io, 1 + 8 + 1 + 5 + 2 + ASYM_N_SIGNALS);
}

static void fill_many_tasks(struct asym_record_io *io)
{
    fill_empty_snapshot(io, 5);
    for (unsigned i = 0; i < 3; i++)
        asym_record_u64(io, ASYM_RECORD_MAX_TASKS, UINT64_MAX);
    asym_record_u64(io, 0, 0);
}

static void fill_many_outcomes(struct asym_record_io *io)
{
    fill_empty_snapshot(io, 5);
    zeros(io, 4);
    asym_record_u64(io, ASYM_RECORD_ITEM_FEEDBACK, 3);
    asym_record_word(io, 1);
    asym_record_u64(io, UINT32_MAX, UINT64_MAX);
    asym_record_u64(io, UINT32_MAX, UINT64_MAX);
}

static void fill_past(struct asym_record_io *io)
{
    for (unsigned k = 0; k < 2; k++) {
        fill_empty_snapshot(io, 5 - k);
        zeros(io, 4);
    }
}

static void fill_nothing_known(struct asym_record_io *io)
{
    asym_record_u64(io, 17, 17);
}

TEST(numbers_out_of_range_are_refused)
{
    static const struct {
        void (*fill)(struct asym_record_io *io);
        const char *said;
        size_t n;
    } rows[] = {
        {fill_many_tasks, "more items than bytes", 0},
        {fill_many_outcomes, "a number is too large", 1},
        {fill_past, "the time goes back", 1},
        {fill_nothing_known, "a number is too large", 0},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const struct reading r = read_after_machine(rows[i].fill);
        if (r.result != -EBADMSG || !strstr(r.said, rows[i].said) || !strstr(r.said, "f: byte "))
            fail_msg("row %zu: %d, %s", i, r.result, r.said);
        assert_true(r.n <= rows[i].n);
    }
}

/* A text of the head at each place, in the order of the file. */
enum { HEAD_TEXTS = 5 };

/* Writes a head without the checks of the writer: all its texts are "x" but the one at place. */
static void forge_head(struct forged *f, unsigned place, const char *text)
{
    ASYM_CLEANUP(asym_record_io_done) struct asym_record_io io = {.writing = true};
    const char *all[HEAD_TEXTS];
    for (unsigned i = 0; i < HEAD_TEXTS; i++)
        all[i] = i == place ? text : "x";
    f->out = open_memstream(&f->bytes, &f->len);
    assert_non_null(f->out);
    assert_int_equal(asym_record_write_signature(f->out), 0);
    asym_record_text(&io, all[0]); /* version */
    asym_record_text(&io, all[1]); /* policy */
    for (unsigned i = 0; i < 3; i++)
        asym_record_u64(&io, 0, 0);
    asym_record_u64(&io, 1, 1); /* settings */
    asym_record_u64(&io, 1, 1); /* notes */
    for (unsigned i = 2; i < HEAD_TEXTS; i++)
        asym_record_text(&io, all[i]);
    assert_int_equal(asym_record_write_segment(f->out, io.bytes, io.used), 0);
}

TEST(texts_of_the_head_that_a_terminal_obeys_are_refused)
{
    static const struct {
        const char *text;
        bool accepted;
    } rows[] = {
        {"0.2~rc1 \xc3\xa4\\ \xe2\x82\xac", true},
        {"", true},
        {"\x1b]0;owned\x07", false},
        {"a\nb", false},
        {"\x7f", false},
        {"\xc2\x9b"
         "2J",
         false},
        {"\xff", false},
        {"\xc3", false},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows) * HEAD_TEXTS; i++) {
        struct forged forged;
        forge_head(&forged, (unsigned)(i % HEAD_TEXTS), rows[i / HEAD_TEXTS].text);
        const struct reading r = read_forged(&forged);
        /* A head that is accepted is followed by the end of the file. */
        const char *said = rows[i / HEAD_TEXTS].accepted ? "the file ends" : "control characters";
        if (!strstr(r.said, said) || strncmp(r.said, "f: byte ", 8) != 0 || strchr(r.said, '\x1b'))
            fail_msg("row %zu, place %zu: %d, %s", i / HEAD_TEXTS, i % HEAD_TEXTS, r.result, r.said);
    }
}

TEST(a_writer_refuses_a_head_that_a_reader_refuses)
{
    const char *const note = "a\x1b[2Jb";
    const struct asym_record_head head = {.version = "0.1", .policy = "pa", .notes = &note, .n_notes = 1};
    struct asym_record_writer *w;
    ASYM_AUTO_FREE char *bytes = NULL;
    size_t len;
    FILE *out = open_memstream(&bytes, &len);
    assert_int_equal(asym_record_writer_new(out, &head, &w), -E2BIG);
    fclose(out);
}

TEST(other_files_are_refused)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f = {0};
    const struct reading r = read_all("[machine]\ncounts = 1\n", 21, NULL);
    assert_int_equal(r.result, -EBADMSG);
    assert_non_null(strstr(r.said, "not a record"));
    make_small(&f);
    f.bytes[12] = 1;
    const struct reading other = read_all(f.bytes, f.len, NULL);
    assert_int_equal(other.result, -EBADMSG);
    assert_non_null(strstr(other.said, "version 1"));
}

/* The worst load: no thread does in an interval what it did in the last. */
TEST(records_of_5000_threads_take_at_most_20_mb_a_minute)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f = {0};
    record_fixture_make(&f, &(struct record_fixture_plan){.seed = 7,
                                                          .threads = 5000,
                                                          .snapshots = 150,
                                                          .interval = 100 * ASYM_MSEC,
                                                          .policy = "none",
                                                          .plain = true,
                                                          .noisy = true});
    print_message("a quarter of a minute of 5000 threads: %zu bytes\n", f.len);
    assert_true(f.len <= 20u * 1000 * 1000 / 4);
    const struct reading r = read_all(f.bytes, f.len, &f);
    assert_int_equal(r.result, 0);
    assert_int_equal(r.n, 150);
}

/* A source of one snapshot, again and again. */
struct repeating {
    struct asym_source source;
    struct asym_snapshot s;
    unsigned feedbacks, refreshes;
};

static int repeat_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct repeating *u = (struct repeating *)(void *)source;
    *ret = u->s;
    return 1;
}

static void repeat_feedback(struct asym_source *source, const struct asym_feedback *feedback)
{
    ((struct repeating *)(void *)source)->feedbacks++;
}

static void repeat_refresh(struct asym_source *source)
{
    ((struct repeating *)(void *)source)->refreshes++;
}

TEST(the_source_hands_on_what_a_reader_gets_and_reports_a_full_disk)
{
    struct gen g = {4};
    struct asym_machine m;
    struct asym_record_writer *w;
    struct asym_source *source;
    struct asym_snapshot s;
    const struct asym_record_head head = {.version = "0.1", .policy = "pa"};
    gen_plain_machine(&m, 4, 2);
    struct gen_load *load = gen_load_random(&g, &m, 20, true);
    for (size_t k = 0; k < 20; k++)
        gen_load_share_one(load, k, 1.0 / 3);
    struct repeating inner = {.source = {.next = repeat_next, .feedback = repeat_feedback, .refresh = repeat_refresh},
                              .s = load->s};
    FILE *out = fopen("/dev/full", "w");
    assert_non_null(out);
    setvbuf(out, NULL, _IOFBF, 1 << 16);
    /* The head waits in the buffer of the C library for no longer than its segment. */
    assert_int_equal(asym_record_writer_new(out, &head, &w), -ENOSPC);
    fclose(out);
    ASYM_AUTO_FREE char *bytes = NULL;
    size_t len;
    out = open_memstream(&bytes, &len);
    assert_int_equal(asym_record_writer_new(out, &head, &w), 0);
    assert_int_equal(asym_record_source_new(&inner.source, w, &source), 0);
    assert_int_equal(source->next(source, &s), 1);
    assert_int_equal(s.n_tasks, 20);
    assert_true(s.tasks[0].runnable * 16384 - 5461 < 1e-9 && s.tasks[0].runnable * 16384 - 5461 > -1e-9);
    const struct asym_plan plan = {.n_apps = 0};
    asym_source_feedback(source, &(struct asym_feedback){.snapshot = &s, .plan = &plan});
    asym_source_refresh(source);
    assert_int_equal(inner.feedbacks, 1);
    assert_int_equal(inner.refreshes, 1);
    /* A thread that is listed twice: an engine could not tell the two. */
    const struct asym_taskid own = load->tasks[1].id;
    load->tasks[1].id = load->tasks[0].id;
    struct asym_snapshot twice = load->s;
    struct asym_record_writer *other;
    assert_int_equal(asym_record_writer_new(out, &head, &other), 0);
    assert_int_equal(asym_record_writer_add(other, &twice), -E2BIG);
    assert_non_null(strstr(asym_record_writer_fault(other), "twice"));
    asym_record_writer_free(other);
    load->tasks[1].id = own;
    /* An application that does not list its threads in order. */
    load->apps[0].first_task++;
    assert_int_equal(source->next(source, &s), -E2BIG);
    assert_non_null(strstr(asym_record_writer_fault(w), "in the order of their applications"));
    assert_int_equal(source->next(source, &s), -E2BIG);
    source->close(source);
    asym_record_writer_free(w);
    fclose(out);
    gen_load_free(load);
}

/* docs/record-format.md promises 1/16384 of an interval, and at least that for a thread that ran. */
TEST(a_share_is_rounded_to_the_nearest_part_and_never_to_none)
{
    static const struct {
        double parts;
        unsigned coded;
    } rows[] = {{0, 0},           {-1, 0},          {NAN, 0},       {1e-9, 1},      {0.4, 1},
                {1.4, 1},         {1.6, 2},         {2.5, 3},       {8191.6, 8192}, {16383, 16383},
                {16383.4, 16383}, {16383.6, 16384}, {16384, 16384}, {40000, 16384}};
    const size_t n = ASYM_LENGTH(rows);
    const unsigned sizes[] = {ASYM_LENGTH(rows)};
    struct asym_machine m;
    ASYM_CLEANUP(asym_record_io_done) struct asym_record_io io = {.writing = true};
    ASYM_CLEANUP(asym_record_codec_done) struct asym_record_codec c = {.masks = {.n = 0}};
    gen_plain_machine(&m, 4, 2);
    struct gen_load *load = gen_load_new(&m, sizes, 1);
    for (size_t i = 0; i < n; i++) {
        load->tasks[i].runnable = rows[i].parts / 16384;
        load->tasks[i].running = rows[n - 1 - i].parts / 16384;
    }
    struct asym_snapshot s = load->s;
    /* Codes a snapshot as a writer does. Afterwards *s has what a reader gets; the codec owns its arrays. */
    asym_record_snapshot(&io, &c, &s);
    assert_int_equal(io.error, 0);
    for (size_t i = 0; i < n; i++) {
        assert_true(s.tasks[i].runnable * 16384 == rows[i].coded);
        assert_true(s.tasks[i].running * 16384 == rows[n - 1 - i].coded);
    }
    gen_load_free(load);
}

TEST(outcomes_of_one_kind_keep_their_errors)
{
    static const struct asym_outcome from[] = {{.kind = ASYM_OUTCOME_RETRY, .error = -EBUSY},
                                               {.kind = ASYM_OUTCOME_RETRY, .error = -EAGAIN},
                                               {.kind = ASYM_OUTCOME_RETRY, .error = -EAGAIN},
                                               {.kind = ASYM_OUTCOME_DONE}};
    ASYM_CLEANUP(asym_record_io_done) struct asym_record_io out = {.writing = true};
    struct asym_record_codec writer = {.masks = {.n = 0}}, reader = writer;
    const struct asym_outcome *list = from;
    size_t n = ASYM_LENGTH(from);
    asym_record_outcomes(&out, &writer, &list, &n);
    assert_int_equal(out.error, 0);
    struct asym_record_io in = {.bytes = out.bytes, .size = out.used};
    asym_record_outcomes(&in, &reader, &list, &n);
    assert_int_equal(in.error, 0);
    assert_int_equal(n, ASYM_LENGTH(from));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(list[i].kind, from[i].kind);
        assert_int_equal(list[i].error, from[i].error);
    }
    asym_record_codec_done(&writer);
    asym_record_codec_done(&reader);
}

TEST_MAIN
