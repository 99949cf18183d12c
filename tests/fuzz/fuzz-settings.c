/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target: any bytes as a configuration file give settings that print and read back, or an error and unchanged
 * settings. Built with clang -fsanitize=fuzzer,address,undefined.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print(const struct asym_settings *s)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out || asym_settings_print(s, out) < 0)
        abort();
    fclose(out);
    return text;
}

static int load(struct asym_settings *s, const void *data, size_t size, struct asym_error *err)
{
    char path[64];
    int fd = memfd_create("settings", MFD_CLOEXEC);
    if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int r = asym_settings_load(s, path, true, err);
    close(fd);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct asym_settings *s, *back;
    struct asym_error err = {""};
    if (asym_settings_new(&s) < 0 || asym_settings_new(&back) < 0)
        abort();
    int r = load(s, data, size, &err);
    char *after = print(s);
    if (r < 0 && !*err.text)
        abort();
    if (r >= 0 && load(back, after, strlen(after), &err) < 0) {
        fprintf(stderr, "%s\n%s", err.text, after);
        abort();
    }
    asym_settings_check(s, &err);
    free(after);
    asym_settings_free(s);
    asym_settings_free(back);
    return 0;
}
