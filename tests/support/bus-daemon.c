/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/bus-daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "support/live.h"
#include "support/must.h"
#include "support/test.h"

#define PATH      "/org/asymd/Manager"
#define INTERFACE "org.asymd.Manager"

static char dir[64], socket_path[96], address[128], config[96];
static pid_t daemon_pid = -1;

/*
 * The rules of Debian's system.conf, and those of polkitd where it is installed. The user who runs the tests may own asymd's name
 * and polkit's.
 */
static void write_config(void)
{
    file_write(config,
               "<!DOCTYPE busconfig PUBLIC '-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN' "
               "'http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd'>\n"
               "<busconfig><type>system</type><auth>EXTERNAL</auth><listen>%s</listen>\n"
               "<policy context='default'><allow user='*'/><deny own='*'/><deny send_type='method_call'/>\n"
               "<allow send_type='signal'/><allow send_requested_reply='true' send_type='method_return'/>\n"
               "<allow send_requested_reply='true' send_type='error'/><allow receive_type='method_call'/>\n"
               "<allow receive_type='method_return'/><allow receive_type='error'/><allow receive_type='signal'/>\n"
               "<allow send_destination='org.freedesktop.DBus' send_interface='org.freedesktop.DBus'/>\n"
               "<allow send_destination='org.freedesktop.PolicyKit1'/></policy>\n"
               "<include>%s/dbus/org.asymd.conf</include>\n"
               "<include ignore_missing='yes'>/usr/share/dbus-1/system.d/org.freedesktop.PolicyKit1.conf</include>\n"
               "<policy user='%u'><allow own='org.asymd'/><allow own='org.freedesktop.PolicyKit1'/>\n"
               "<allow send_interface='org.freedesktop.DBus.Peer'/></policy></busconfig>\n",
               address, ASYM_SUPPORT_SOURCE, (unsigned)geteuid());
}

void asym_bus_daemon_prepare(void)
{
    snprintf(dir, sizeof dir, "/tmp/asymd-bus-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    snprintf(socket_path, sizeof socket_path, "%s/socket", dir);
    snprintf(address, sizeof address, "unix:path=%s", socket_path);
    snprintf(config, sizeof config, "%s/bus.conf", dir);
    write_config();
    setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1);
}

static int try_connect(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(fd >= 0);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static int await_socket(const char *path)
{
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.02)) {
        const int fd = try_connect(path);
        if (fd >= 0)
            return fd;
    }
    return -1;
}

void asym_bus_daemon_start(void)
{
    char option[128];
    const char *const argv[] = {"/usr/bin/dbus-daemon", option, "--nofork", "--nopidfile", "--nosyslog", NULL};
    snprintf(option, sizeof option, "--config-file=%s", config);
    /* It writes a line for each limit that a client reaches. */
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    daemon_pid = asym_live_start(argv, nothing);
    close(nothing);
    const int fd = await_socket(socket_path);
    assert_true(fd >= 0);
    close(fd);
}

void asym_bus_daemon_stop(void)
{
    char command[128];
    if (daemon_pid > 0)
        asym_live_end(daemon_pid, SIGTERM);
    daemon_pid = -1;
    unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

sd_bus *asym_bus_daemon_connect(void)
{
    sd_bus *bus = NULL;
    MUST(sd_bus_open_system(&bus) >= 0);
    return bus;
}

sd_bus *asym_bus_daemon_await_asymd(void)
{
    sd_bus *bus = asym_bus_daemon_connect();
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.05)) {
        sd_bus_message *reply = NULL;
        const int r = sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                         "GetNameOwner", NULL, &reply, "s", "org.asymd");
        sd_bus_message_unref(reply);
        if (r >= 0)
            return bus;
    }
    fail_msg("asymd has no name on the bus");
    return NULL;
}

sd_bus *asym_bus_daemon_direct(const char *state_dir)
{
    char path[128];
    sd_bus *bus = NULL;
    snprintf(path, sizeof path, "%s/bus", state_dir);
    const int fd = await_socket(path);
    assert_true(fd >= 0);
    assert_true(sd_bus_new(&bus) >= 0);
    assert_true(sd_bus_set_fd(bus, fd, fd) >= 0);
    assert_true(sd_bus_start(bus) >= 0);
    return bus;
}

static const char *destination(sd_bus *bus)
{
    return sd_bus_is_bus_client(bus) > 0 ? "org.asymd" : NULL;
}

int asym_bus_daemon_call(sd_bus *bus, const char *member, char ret_error[128], const char *types, ...)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    ASYM_CLEANUP(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
    va_list args;
    MUST(sd_bus_message_new_method_call(bus, &m, destination(bus), PATH, INTERFACE, member) >= 0);
    va_start(args, types);
    MUST(!types || sd_bus_message_appendv(m, types, args) >= 0);
    va_end(args);
    const int r = sd_bus_call(bus, m, 0, &error, &reply);
    if (ret_error)
        snprintf(ret_error, 128, "%s", error.name ? error.name : "");
    sd_bus_error_free(&error);
    return r < 0 ? r : 0;
}

int asym_bus_daemon_get(sd_bus *bus, const char *name, char type, void *ret)
{
    return sd_bus_get_property_trivial(bus, destination(bus), PATH, INTERFACE, name, NULL, type, ret);
}
