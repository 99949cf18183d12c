/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd-exporter: serves the counters of asymd to Prometheus. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "app/command-line.h"
#include "base/macro.h"
#include "base/text.h"
#include "daemon/exporter/exporter.h"

struct arguments {
    const char *listen;
    bool help, version;
};

static const struct asym_arg args[] = {
    ASYM_ARG("--listen", STRING, "ADDRESS:PORT", listen,
             .help = "serve there; the default is " ASYM_EXPORTER_ADDRESS ", or the socket that systemd hands over"),
    ASYM_ARG("--help", BOOL, NULL, help, .help = "print this help"),
    ASYM_ARG("--version", BOOL, NULL, version, .help = "print the version"),
    {.option = {.key = NULL}},
};

static int fail(enum asym_exit status, const char *what)
{
    fprintf(stderr, "asymd-exporter: %s\n", what);
    return (int)status;
}

static int print_help(void)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    char name[64];
    puts("usage: asymd-exporter [--listen=ADDRESS:PORT]\n"
         "Serves the counters of the running asymd at /metrics, for Prometheus.\n");
    for (const struct asym_arg *row = args; row->option.key; row++)
        asym_args_line(&terminal, 26, asym_args_name(row, name, sizeof name), row->option.help);
    return 0;
}

static int parse(int argc, char **argv, struct arguments *a, struct asym_error *err)
{
    int r = asym_args_default(args, a);
    for (int i = 1; i < argc && r >= 0; i++) {
        char text[128];
        size_t row;
        r = asym_args_take(args, argc, argv, &i, a, &row, err);
        if (r == 0 && argv[i][0] != '-')
            return asym_fail(err, -EINVAL, "stray argument '%s'", asym_text_show(argv[i], text, sizeof text));
        if (r == 0)
            return asym_args_unknown(args, argv[i], "; see asymd-exporter --help", err);
    }
    return r;
}

/* Returns the listening socket, or -errno with err. */
static int open_socket(const struct arguments *a, struct asym_error *err)
{
    const int fd = asym_exporter_take_socket(err);
    if (fd == -ENOENT)
        return asym_exporter_listen(a->listen ? a->listen : ASYM_EXPORTER_ADDRESS, err);
    if (fd >= 0 && a->listen)
        return asym_fail(err, -EINVAL,
                         "--listen has no effect, because systemd hands a socket over; set ListenStream= in "
                         "asymd-exporter.socket instead");
    return fd;
}

static int serve(const struct arguments *a)
{
    struct asym_exporter_http *http = NULL;
    struct asym_error err = {""};
    char address[64];
    sigset_t ends;
    int signal;
    /* Threads inherit the mask: only sigwait gets the signals. */
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    const int fd = open_socket(a, &err);
    if (fd < 0)
        return fail(fd == -EINVAL ? ASYM_EXIT_USAGE : ASYM_EXIT_FAILED, err.text);
    fprintf(stderr, "asymd-exporter: serves http://%s/metrics\n", asym_exporter_address(fd, address, sizeof address));
    if (asym_exporter_http_start(fd, &http) < 0) {
        close(fd);
        return fail(ASYM_EXIT_FAILED, "the HTTP server cannot start");
    }
    sd_notify(1, "READY=1");
    sigwait(&ends, &signal);
    asym_exporter_http_stop(http);
    return ASYM_EXIT_DONE;
}

int main(int argc, char **argv)
{
    struct arguments a = {.listen = NULL};
    struct asym_error err = {""};
    const int r = parse(argc, argv, &a, &err);
    if (r < 0)
        return fail(asym_exit_status(r), *err.text ? err.text : strerror(-r));
    if (!a.help && !a.version)
        return serve(&a);
    if (a.help)
        print_help();
    else
        puts("asymd-exporter " ASYM_VERSION);
    const int w = asym_output_end();
    return w < 0 ? fail(ASYM_EXIT_FAILED, strerror(-w)) : 0;
}
