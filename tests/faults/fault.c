/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A library for LD_PRELOAD that makes one call of asymd fail, at the moment and as often as the test wants. The test shares a
 * file with it, struct control, named by ASYM_FAULT: it can arm a fault before asymd starts or while it runs.
 *
 * Every wrapped function takes at most six integers or pointers, so that one wrapper of six longs serves them all: the calling
 * conventions of x86-64 and AArch64 pass them in registers, those of variadic functions, too.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum call {
#define CALL(name, way, errors) CALL_##name,
#define RAW(name, errors)       CALL_##name,
#define ALLOCATES(name)         CALL_##name,
#include "calls.def"
#undef CALL
#undef RAW
#undef ALLOCATES
    N_CALLS,
    /* Every allocation, whatever function makes it. */
    ANY_ALLOCATION = N_CALLS
};

struct control {
    int32_t call, error; /* call -1: no fault is armed */
    int64_t skip, times; /* so many calls succeed, then so many fail */
    int64_t fired;
    int64_t counts[N_CALLS + 1];
};

static struct control *control;

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv("ASYM_FAULT");
    /* Through the kernel directly: the wrappers below would count these calls. */
    const long fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *(*map)(void *, size_t, int, int, int,
                 off_t) = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    void *at = map(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
    syscall(SYS_close, fd);
    control = at == MAP_FAILED ? NULL : at;
}

/* Returns the errno with which this call fails; 0: it does not. */
static int fault(enum call call)
{
    struct control *c = control;
    if (!c)
        return 0;
    __atomic_fetch_add(&c->counts[call], 1, __ATOMIC_RELAXED);
    if (__atomic_load_n(&c->call, __ATOMIC_ACQUIRE) != (int32_t)call)
        return 0;
    if (__atomic_fetch_sub(&c->skip, 1, __ATOMIC_RELAXED) > 0 ||
        __atomic_fetch_sub(&c->times, 1, __ATOMIC_RELAXED) <= 0)
        return 0;
    __atomic_fetch_add(&c->fired, 1, __ATOMIC_RELAXED);
    return c->error;
}

typedef long six(long, long, long, long, long, long);

static six *real(six **known, const char *name)
{
    if (!*known)
        *known = (six *)dlsym(RTLD_NEXT, name);
    return *known;
}

static long fail(int error)
{
    errno = error;
    return -1;
}

static long fail_empty(int error)
{
    errno = error;
    return 0;
}

static long fail_code(int error)
{
    return error;
}

#define FAIL_MINUS(error) fail(error)
#define FAIL_EMPTY(error) fail_empty(error)
#define FAIL_CODE(error)  fail_code(error)

/* These give the descriptor back even where they fail. */
static int closes(enum call call)
{
    return call == CALL_close || call == CALL_closedir || call == CALL_fclose;
}

#define WRAP(symbol, call, way)                                                                                        \
    long symbol##_faulty(long a, long b, long c, long d, long e, long f) __asm__(#symbol);                             \
    long symbol##_faulty(long a, long b, long c, long d, long e, long f)                                               \
    {                                                                                                                  \
        static six *known;                                                                                             \
        const int error = fault(call);                                                                                 \
        if (error && closes(call))                                                                                     \
            real(&known, #symbol)(a, b, c, d, e, f);                                                                   \
        return error ? FAIL_##way(error) : real(&known, #symbol)(a, b, c, d, e, f);                                    \
    }

#define CALL(name, way, errors) WRAP(name, CALL_##name, way)
#define RAW(name, errors)
#define ALLOCATES(name)
#include "calls.def"
#undef CALL
#undef RAW
#undef ALLOCATES

/* Libraries that are built for large files call these names. */
WRAP(open64, CALL_open, MINUS)
WRAP(openat64, CALL_openat, MINUS)
WRAP(fopen64, CALL_fopen, EMPTY)
WRAP(pread64, CALL_pread, MINUS)
WRAP(pwrite64, CALL_pwrite, MINUS)
WRAP(lseek64, CALL_lseek, MINUS)
WRAP(stat64, CALL_stat, MINUS)
WRAP(fstat64, CALL_fstat, MINUS)
WRAP(fstatat64, CALL_fstatat, MINUS)
WRAP(ftruncate64, CALL_ftruncate, MINUS)
WRAP(fcntl64, CALL_fcntl, MINUS)
WRAP(mmap64, CALL_mmap, MINUS)
WRAP(scandir64, CALL_scandir, MINUS)
WRAP(getrlimit64, CALL_getrlimit, MINUS)
WRAP(setrlimit64, CALL_setrlimit, MINUS)
WRAP(readdir64, CALL_readdir, EMPTY)
/* getline(3) and fscanf(3) in the names of the C library. */
WRAP(__getdelim, CALL_getdelim, MINUS)
WRAP(__isoc99_fscanf, CALL_fscanf, MINUS)
WRAP(__isoc23_fscanf, CALL_fscanf, MINUS)

typedef long seven(long, long, long, long, long, long, long);

long syscall_faulty(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");
long syscall_faulty(long number, long a, long b, long c, long d, long e, long f)
{
    static seven *known;
    static const struct {
        long number;
        enum call call;
    } raw[] = {
#define CALL(name, way, errors)
#define RAW(name, errors) {SYS_##name, CALL_##name},
#define ALLOCATES(name)
#include "calls.def"
#undef CALL
#undef RAW
#undef ALLOCATES
    };
    for (size_t i = 0; i < sizeof raw / sizeof *raw; i++) {
        const int error = raw[i].number == number ? fault(raw[i].call) : 0;
        if (error)
            return fail(error);
    }
    if (!known)
        known = (seven *)dlsym(RTLD_NEXT, "syscall");
    return known(number, a, b, c, d, e, f);
}

/* dlsym may allocate, so these go to the C library by its own names. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static int no_memory(enum call call)
{
    const int error = fault(call), any = fault(ANY_ALLOCATION);
    if (error || any)
        errno = ENOMEM;
    return error || any;
}

void *malloc(size_t size)
{
    return no_memory(CALL_malloc) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return no_memory(CALL_calloc) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return no_memory(CALL_realloc) ? NULL : __libc_realloc(p, size);
}
