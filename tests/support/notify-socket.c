/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/notify-socket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "support/live.h"
#include "support/test.h"

int asym_notify_socket_open(const char *dir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = (time_t)ASYM_LIVE_PATIENCE};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", dir);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    return fd;
}

void asym_notify_socket_close(int fd)
{
    close(fd);
    unsetenv("NOTIFY_SOCKET");
}

/* A sender has a buffer of its own, which holds fewer messages than a long queue. Returns whether one message was sent. */
static bool fill_from_one_sender(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bool sent = false;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", getenv("NOTIFY_SOCKET"));
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    while (send(fd, "full", 4, MSG_DONTWAIT) == 4)
        sent = true;
    assert_int_equal(errno, EAGAIN);
    close(fd);
    return sent;
}

void asym_notify_socket_fill(void)
{
    while (fill_from_one_sender())
        ;
}

void asym_notify_socket_await(int fd, const char *wanted, char *ret, size_t size)
{
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end;) {
        const ssize_t n = recv(fd, ret, size - 1, 0);
        if (n < 0)
            break;
        ret[n] = '\0';
        if (strstr(ret, wanted))
            return;
    }
    fail_msg("no message with '%s'", wanted);
}
