/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/fuse.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "support/must.h"
#include "support/test.h"

#define FILE_SIZE  65536
#define FUSE_MAJOR 10
#define FUSE_MINOR 229

void asym_fuse_prepare(const char *dir)
{
    char path[160];
    assert_int_equal(chmod(dir, 0755), 0);
    snprintf(path, sizeof path, "%s/mount", dir);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(chmod(path, 0777), 0);
    snprintf(path, sizeof path, "%s/fuse", dir);
    /* Only root can open /dev/fuse on some machines, so root makes a device that every user can open. */
    if (geteuid() == 0 && mknod(path, S_IFCHR | 0666, makedev(FUSE_MAJOR, FUSE_MINOR)) == 0)
        assert_int_equal(chmod(path, 0666), 0);
}

struct file_system {
    int device, n_opened;
    uint32_t unanswered; /* requests with this opcode wait for ever */
};

static void reply(const struct file_system *fs, uint64_t unique, int error, const void *data, size_t size)
{
    char buf[4096];
    const struct fuse_out_header head = {.len = (uint32_t)(sizeof head + size), .error = error, .unique = unique};
    memcpy(buf, &head, sizeof head);
    if (size > 0)
        memcpy(buf + sizeof head, data, size);
    if (write(fs->device, buf, sizeof head + size) < 0)
        perror("write to /dev/fuse");
}

static struct fuse_attr attributes(uint64_t inode)
{
    return (struct fuse_attr){.ino = inode,
                              .mode = inode == 1 ? S_IFDIR | 0777 : S_IFREG | 0666,
                              .nlink = 1,
                              .size = FILE_SIZE,
                              .blksize = 4096};
}

/* The second process that opens the file maps it without a cache. */
static void serve_one(struct file_system *fs, const struct fuse_in_header *in)
{
    const struct fuse_init_out init = {.major = 7, .minor = 31, .max_readahead = 4096, .max_write = 4096};
    const struct fuse_attr_out attr = {.attr_valid = 100, .attr = attributes(in->nodeid)};
    const struct fuse_entry_out entry = {.nodeid = 2, .entry_valid = 100, .attr_valid = 100, .attr = attributes(2)};
    const struct fuse_open_out open = {.fh = 1, .open_flags = fs->n_opened > 0 ? FOPEN_DIRECT_IO : 0};
    if (in->opcode == fs->unanswered)
        return;
    switch (in->opcode) {
    case FUSE_INIT:
        reply(fs, in->unique, 0, &init, sizeof init);
        break;
    case FUSE_GETATTR:
        reply(fs, in->unique, 0, &attr, sizeof attr);
        break;
    case FUSE_LOOKUP:
        reply(fs, in->unique, 0, &entry, sizeof entry);
        break;
    case FUSE_OPEN:
        fs->n_opened++;
        reply(fs, in->unique, 0, &open, sizeof open);
        break;
    case FUSE_FLUSH:
    case FUSE_RELEASE:
        reply(fs, in->unique, 0, NULL, 0);
        break;
    case FUSE_READ:
    case FUSE_INTERRUPT:
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
        break;
    default:
        reply(fs, in->unique, -ENOSYS, NULL, 0);
    }
}

void asym_fuse_serve(int device, uint32_t unanswered, pid_t test)
{
    static _Alignas(struct fuse_in_header) char buf[1 << 20];
    struct file_system fs = {.device = device, .unanswered = unanswered};
    struct pollfd fds[] = {{.fd = device, .events = POLLIN},
                           {.fd = (int)syscall(SYS_pidfd_open, test, 0), .events = POLLIN}};
    MUST(fds[1].fd >= 0 && fcntl(device, F_SETFL, O_NONBLOCK) == 0);
    while (poll(fds, 2, -1) > 0 && fds[1].revents == 0) {
        ssize_t n = read(device, buf, sizeof buf);
        if (n >= (ssize_t)sizeof(struct fuse_in_header))
            serve_one(&fs, (const struct fuse_in_header *)(const void *)buf);
        else if (errno != EINTR && errno != ENOENT && errno != EAGAIN)
            _exit(1);
    }
    _exit(0);
}

static void fail_of(const char *call)
{
    fprintf(stderr, "%s: %s\n", call, strerror(errno));
    _exit(1);
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        fail_of(path);
    close(fd);
}

int asym_fuse_mount(const char *dir)
{
    char node[160], point[160], text[160];
    const int uid = (int)getuid(), gid = (int)getgid();
    snprintf(node, sizeof node, "%s/fuse", dir);
    snprintf(point, sizeof point, "%s/mount", dir);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        fail_of("unshare(CLONE_NEWUSER | CLONE_NEWNS)");
    write_text("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "0 %d 1", uid);
    write_text("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "0 %d 1", gid);
    write_text("/proc/self/gid_map", text);
    int device = open(access(node, F_OK) == 0 ? node : "/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0)
        fail_of("open /dev/fuse");
    snprintf(text, sizeof text, "fd=%d,rootmode=40777,user_id=0,group_id=0", device);
    if (mount("fuse", point, "fuse", MS_NOSUID | MS_NODEV, text) < 0)
        fail_of("mount fuse");
    return device;
}
