/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/record-input.h"

#include <errno.h>
#include <string.h>

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

int asym_record_input_open(const char *path, FILE **ret_in, struct asym_record_reader **ret_reader,
                           struct asym_error *err)
{
    FILE *in = fopen(path, "re");
    if (!in)
        return asym_fail(err, -EINVAL, "%.200s: %s", path, strerror(errno));
    const int r = asym_record_reader_new(in, path, ret_reader, err);
    if (r < 0) {
        fclose(in);
        return asym_record_input_result(r);
    }
    *ret_in = in;
    return 0;
}
