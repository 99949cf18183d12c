/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the file of a program is linked, whatever it holds. */
#include <sys/stat.h>

#include "linux/sys/elf.h"
#include "support/test.h"

TEST(programs_show_how_they_are_linked)
{
    struct asym_elf elf;
    char path[] = "/tmp/asym-elf-XXXXXX";
    assert_int_equal(asym_elf_read("/proc/self/exe", &elf), 0);
    assert_true(elf.is_elf && !elf.is_static && !elf.privileged && !elf.has_gomp && !elf.has_omp);
    assert_true(asym_elf_read("/nonexistent", &elf) < 0);
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
    assert_int_equal(asym_elf_read(path, &elf), 0);
    assert_false(elf.is_elf);
    assert_int_equal(fchmod(fd, 06755), 0);
    assert_int_equal(asym_elf_read(path, &elf), 0);
    assert_true(elf.privileged);
    close(fd);
    unlink(path);
}

/* The parser stays within the bounds of any file. */
TEST(files_that_are_spoilt_are_read_to_no_harm)
{
    static unsigned char program[65536], spoilt[sizeof program];
    char path[] = "/tmp/asym-elf-XXXXXX";
    FILE *in = fopen("/proc/self/exe", "r");
    const size_t n = fread(program, 1, sizeof program, in);
    fclose(in);
    int fd = mkstemp(path);
    uint32_t seed = 2010;
    for (int round = 0; round < 2000; round++) {
        struct asym_elf elf;
        memcpy(spoilt, program, n);
        for (int k = 0; k < 8; k++) {
            seed = seed * 1664525 + 1013904223;
            spoilt[(seed >> 8) % 1024] = (unsigned char)(seed >> 24);
        }
        const size_t size = round % 2 ? n : (size_t)(seed >> 8) % n;
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, spoilt, size, 0), size);
        assert_int_equal(asym_elf_read(path, &elf), 0);
    }
    close(fd);
    unlink(path);
}

TEST_MAIN
