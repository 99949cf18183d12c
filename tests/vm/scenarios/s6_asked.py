# SPDX-License-Identifier: GPL-2.0-or-later
"""A running asymd is seen, asked and told: by the system bus, by its own socket, and by the exporter. Prints the screens."""
import json
import re

TITLE = "asymctl sees, asks and tells the service"
MACHINE = "big-little"
CONFIG = """[asymd]
policy = pa
interval = 1s
cpu_budget = 100"""
PORT = 10642
# A client for one HTTP request; the guest has no curl.
GET = f"exec 3<>/dev/tcp/127.0.0.1/{PORT} && printf 'GET /metrics HTTP/1.0\\r\\n%b\\r\\n' '{{}}' >&3 && cat <&3"
OPENMETRICS = r"Accept: application/openmetrics-text\r\n"


# The affinity of the threads of build. The ledger does not show that they are restored: it keeps their records for a while.
MASKS = "grep -h Cpus_allowed_list /proc/$(pidof build)/task/*/status"


def show(s, command):
    """Prints a screen as a user sees it, and returns it."""
    text = s.sh(f"COLUMNS=80 {command}")
    s.say(f"# {command}")
    for line in text.splitlines():
        s.say(line)
    return text


def check_screens(s):
    s.load("spin 1 300")
    s.sh("cp /opt/load-spin /opt/build && nice -n 10 /opt/build 8 300 >/dev/null 2>&1 &")
    steering = s.until(f"{MASKS} | grep -qv '0-7$'", 20)
    s.check("it steers", s.sh(f"{MASKS} | sort | uniq -c"), steering)
    text = show(s, "asymctl status")
    s.check("status names the policy and both core types", "pa" if "pa" in text else text.splitlines()[0],
            "pa" in text and re.search(r"\bbuild\b|steer", text) is not None)
    text = show(s, "asymctl top --once")
    s.check("top lists the parallel program", "build" if "build" in text else "not there", "build" in text)
    text = show(s, "asymctl why build")
    s.check("why says that it is parallel", "parallel" if "parallel" in text else "no word", "parallel" in text)
    show(s, "asymctl why load-spin")
    s.sh("taskset -p -c 6-7 $(pidof load-spin) >/dev/null; sleep 4")
    text = show(s, "asymctl why load-spin")
    # The screen may break the line within the command.
    s.check("why says how to take back a program whose mask the user set", "asymctl adopt" if "adopt" in text else "no word",
            "asymctl adopt" in " ".join(text.split()))
    s.sh("asymctl adopt $(pidof load-spin); sleep 4")
    show(s, "asymctl why load-spin")
    show(s, "asymctl stats")


def check_name(s):
    owned = s.until("busctl --list | grep -q '^org.asymd '", 60)
    said = [line for line in s.journal().splitlines() if "system bus" in line]
    s.check("the service has its name on the system bus", said[-1] if said else "no word in the journal", owned)


def check_orders(s):
    show(s, "asymctl policy")
    s.sh("asymctl policy rr")
    name = s.sh("busctl get-property org.asymd /org/asymd/Manager org.asymd.Manager Policy")
    s.check("the system bus shows the policy that asymctl set", name, name == 's "rr"')
    s.sh("asymctl policy pa")
    s.sh("asymctl pause")
    back = s.until(f"! {MASKS} | grep -qv '0-7$'", 20)
    s.check("a pause puts everything back", s.sh(f"{MASKS} | sort | uniq -c"), back)
    show(s, "asymctl status")
    s.sh("asymctl resume")
    again = s.until(f"{MASKS} | grep -qv '0-7$'", 20)
    s.check("after resume it steers", s.sh(f"{MASKS} | sort | uniq -c"), again)
    s.load("spin 2 8")
    show(s, "timeout -s INT 10 asymctl watch | head -20")


def check_user(s):
    s.sh("id visitor >/dev/null 2>&1 || useradd visitor")
    status, text = s.try_sh("setpriv --reuid=visitor --clear-groups --regid=visitor asymctl status")
    s.check("an ordinary user sees the status", f"exit status {status}", status == 0)
    status, text = s.try_sh("setpriv --reuid=visitor --clear-groups --regid=visitor asymctl pause")
    s.check("and changes nothing", text.splitlines()[0] if text else "no word", status != 0)
    status, text = s.try_sh("setpriv --reuid=visitor --clear-groups --regid=visitor asymctl why build")
    s.check("and asks about a program of root, which /proc shows, too", text.splitlines()[0] if text else "no word",
            status == 0)
    status, text = s.try_sh("setpriv --reuid=visitor --clear-groups --regid=visitor "
                            "busctl introspect org.asymd /org/asymd/Manager org.asymd.Manager")
    s.check("and introspects the object with busctl", f"exit status {status}, {len(text.splitlines())} lines",
            status == 0 and ".Explain" in text and ".Decision" in text)


def summary(answer):
    """The status line of an HTTP answer; of an error the text, too."""
    lines = answer.splitlines()
    return lines[0] if "200" in lines[0] else f"{lines[0]}: {lines[-1]}"


def check_exporter(s):
    s.sh("systemctl start asymd-exporter.socket")
    text = s.sh(GET.format(""))
    s.check("the exporter's socket starts it, and it serves the counters", summary(text),
            "200" in text.splitlines()[0] and "\nasymd_cycles_total " in text and "# EOF" not in text)
    text = s.sh(GET.format(OPENMETRICS))
    s.check("a client that accepts OpenMetrics gets that", summary(text),
            "200" in text.splitlines()[0] and text.rstrip().endswith("# EOF") and "\nasymd_cycles_total " in text)
    user = s.sh("ps -o user:32= -C asymd-exporter").strip()
    s.check("it runs as a user of its own", user, user == "asymd-exporter")


def run(s):
    # As README.md says. The bus daemon began before asymd's policy file was there.
    s.sh("systemd-sysusers; systemctl reload dbus")
    s.start(CONFIG)
    check_name(s)
    check_screens(s)
    check_orders(s)
    check_user(s)
    check_exporter(s)
    status = json.loads(s.sh("asymctl status --json"))
    s.check("status --json is JSON", sorted(status)[0], isinstance(status, dict))
    s.sh("systemctl stop asymd")
    code, text = s.try_sh("asymctl status")
    s.check("without a service, status ends with 5 and says how to start it", text.splitlines()[0], code == 5 and "start" in text)
