/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detection of RTX from outside: by the maps, the threads' shares and the file of a program. */
#include <sys/mman.h>
#include <sys/stat.h>

#include <asym/rtx.h>

#include "linux/observe/proc-reader.h"
#include "linux/sys/elf.h"
#include "linux/rtx/rtx-overlay.h"
#include "linux/sys/proc-parse.h"
#include "support/test.h"

TEST(maps_show_pages_and_runtimes)
{
    static const struct {
        const char *text;
        unsigned bits;
    } cases[] = {
        {"", 0},
        {"7f0000000000-7f0000021000 rw-s 00000000 00:01 2050  /memfd:asym-rtx (deleted)\n", ASYM_MAPS_PAGE},
        {"7f0000000000-7f0000021000 rw-s 00000000 00:31 7  /run/asymd/rtx/1000/asym-rtx.77.1234567\n", ASYM_MAPS_PAGE},
        {"7f0000000000-7f0000021000 r-xp 00000000 08:01 99  /usr/lib/x86_64-linux-gnu/libomp.so.5\n",
         ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"7f0000000000-7f0000021000 r-xp 00000000 08:01 99  /usr/lib/llvm-14/lib/libomp-14.so.5\n",
         ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"7f0000000000-7f0000021000 r-xp 00000000 08:01 99  /usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0\n",
         ASYM_MAPS_OPENMP},
        {"7f0000000000-7f0000021000 r-xp 00000000 08:01 99  /opt/intel/lib/libiomp5.so\n",
         ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"7f0000000000-7f0000021000 r-xp 00000000 08:01 99  /usr/lib/x86_64-linux-gnu/libtbb.so.12.8\n",
         ASYM_MAPS_COUNTS_LATE},
        {"7f0000000000-7f0000021000 r-xp 00000000 08:01 99  /usr/lib/libompare.so\n", 0},
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++)
        assert_int_equal(asym_maps_scan(cases[i].text, strlen(cases[i].text)), cases[i].bits);
}

TEST(a_page_is_found_behind_many_mappings)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    bool cut;
    assert_int_equal(asym_root_open(NULL, &root, NULL), 0);
    assert_int_equal(asym_maps_read(&root, getpid(), ASYM_READ_MAPS_MOST, &cut) & ASYM_MAPS_PAGE, 0);
    /* Every second page has another protection: the maps need more than one read(2). */
    const size_t n = 600, size = (size_t)sysconf(_SC_PAGESIZE);
    char *many = mmap(NULL, n * size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(many, MAP_FAILED);
    for (size_t i = 0; i < n; i += 2)
        assert_int_equal(mprotect(many + i * size, size, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(asym_rtx_join(NULL), 0);
    assert_int_equal(asym_maps_read(&root, getpid(), ASYM_READ_MAPS_MOST, &cut) & ASYM_MAPS_PAGE, ASYM_MAPS_PAGE);
    munmap(many, n * size);
}

TEST(two_threads_without_a_pause_are_suspect)
{
    struct asym_task tasks[3] = {{.runnable = 1}, {.runnable = 0.9}, {.runnable = 0}};
    const struct asym_app app = {.n_tasks = 3};
    const struct asym_snapshot s = {.tasks = tasks, .apps = &app, .n_tasks = 3, .n_apps = 1};
    assert_false(asym_rtxd_never_pauses(&s, &app));
    tasks[1].runnable = 0.96;
    assert_true(asym_rtxd_never_pauses(&s, &app));
}

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
