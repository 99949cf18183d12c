/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/record-files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"

/*
 * A file that has another name until it is complete: FILE.part. Only its owner can read it, because it can name others' processes.
 */

int asym_part_file_open(struct asym_part_file *f, const char *path, struct asym_error *err)
{
    struct stat st;
    *f = (struct asym_part_file){.path = path};
    if ((size_t)snprintf(f->part, sizeof f->part, "%s.part", path) >= sizeof f->part)
        return asym_fail(err, -ENAMETOOLONG, "%.200s...: the name is too long", path);
    /* The file at the end replaces the one with that name: as root, that could be a device. */
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return asym_fail(err, -EINVAL, "%.1000s: exists, and is not a regular file", path);
    if (unlink(f->part) < 0 && errno != ENOENT)
        return asym_fail(err, -errno, "cannot remove %.900s: %s", f->part, strerror(errno));
    ASYM_AUTO_CLOSE int fd = open(f->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    f->out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!f->out)
        return asym_fail(err, -errno, "cannot create %.900s: %s", f->part, strerror(errno));
    fd = -1;
    return 0;
}

int asym_part_file_finish(struct asym_part_file *f, struct asym_error *err)
{
    char old[sizeof f->part];
    if (fflush(f->out) != 0)
        return asym_fail(err, -errno, "%.1000s: %s", f->part, strerror(errno));
    /* A record cannot be made again. perf record keeps the earlier file the same way. */
    snprintf(old, sizeof old, "%s.old", f->path);
    f->kept = rename(f->path, old) == 0;
    if (!f->kept && errno != ENOENT)
        return asym_fail(err, -errno, "cannot rename %.400s to %.400s: %s", f->path, old, strerror(errno));
    if (rename(f->part, f->path) == 0)
        return 0;
    const int r = -errno;
    if (f->kept && rename(old, f->path) == 0)
        f->kept = false;
    return asym_fail(err, r, "cannot rename %.400s to %.400s: %s", f->part, f->path, strerror(-r));
}

/* Opens the record that a verb reads. A record that cannot be read is wrong usage, as every other input file. */

int asym_record_input_result(int r)
{
    return r == -EBADMSG || r == -EIO ? -EINVAL : r;
}

void asym_record_input_say_cut(const struct asym_record_reader *reader)
{
    const char *cut = asym_record_reader_cut(reader);
    if (cut)
        fprintf(stderr, "asymctl: %s: the recorder was killed, or the file was cut\n", cut);
}

/* Without O_NONBLOCK, open(2) waits for the writer of a FIFO. It changes nothing for a file. */
static int open_file(const char *path, FILE **ret_in, struct asym_error *err)
{
    struct stat st;
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return asym_fail(err, -EINVAL, "%.200s: %s", path, strerror(errno));
    if (S_ISFIFO(st.st_mode))
        return asym_fail(err, -EINVAL,
                         "%.200s is a pipe, and asymctl reads a record more than once: write the record to a file, and "
                         "name that",
                         path);
    FILE *in = fdopen(fd, "r");
    if (!in)
        return asym_fail(err, -EINVAL, "%.200s: %s", path, strerror(errno));
    fd = -1;
    *ret_in = in;
    return 0;
}

int asym_record_input_open(const char *path, FILE **ret_in, struct asym_record_reader **ret_reader,
                           struct asym_error *err)
{
    FILE *in = NULL;
    if (open_file(path, &in, err) < 0)
        return -EINVAL;
    const int r = asym_record_reader_new(in, path, ret_reader, err);
    if (r < 0) {
        fclose(in);
        return asym_record_input_result(r);
    }
    *ret_in = in;
    return 0;
}
