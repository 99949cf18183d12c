/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/record-input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macro.h"

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
