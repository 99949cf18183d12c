# SPDX-License-Identifier: GPL-2.0-or-later
"""A running asymd is seen, asked and told: by the system bus, by its own socket, and by the exporter that prometheus scrapes.
Prints the screens."""
import json
import re
import urllib.parse

TITLE = "asymctl sees, asks and tells the service"
MACHINE = "big-little"
CONFIG = """[asymd]
policy = pa
interval = 1s
cpu_budget = 100"""
PACKS = ("extras",)
PORT, PROMETHEUS_PORT = 10642, 9090
# Prometheus and the exporter get as long as this: QEMU emulates all of it.
SCRAPE_S = 60
PROMETHEUS = f"""scrape_configs:
- job_name: asymd
  scrape_interval: 3s
  scrape_timeout: 3s
  static_configs: [{{targets: ["127.0.0.1:{PORT}"]}}]"""
OPENMETRICS = r"Accept: application/openmetrics-text\r\n"


def get(port, path, header=""):
    """A command for one HTTP request; the guest has no curl."""
    return (f"exec 3<>/dev/tcp/127.0.0.1/{port} && printf 'GET %s HTTP/1.0\\r\\n%b\\r\\n' '{path}' '{header}' >&3 && "
            "cat <&3")


# The affinity of the threads of load-build. The ledger does not show that they are restored: it keeps their records for a while.
MASKS = "grep -h Cpus_allowed_list /proc/$(pidof load-build)/task/*/status"


def show(s, command):
    """Prints a screen as a user sees it, and returns it."""
    text = s.sh(f"COLUMNS=80 {command}")
    s.say(f"# {command}")
    for line in text.splitlines():
        s.say(line)
    return text


def check_screens(s):
    s.load("spin 1 900")
    s.sh("cp /opt/load-spin /opt/load-build")
    s.load("build 8 900")
    steering = s.until(f"{MASKS} | grep -qv '0-7$'", 20)
    s.check("it steers", s.sh(f"{MASKS} | sort | uniq -c"), steering)
    text = show(s, "asymctl status")
    names = [name for name in ("pa", "fast CPUs", "slow CPUs", "load-build") if re.search(rf"\b{name}\b", text)]
    s.check("status names the policy, both core types and the parallel program", ", ".join(names), len(names) == 4)
    text = show(s, "asymctl top --once")
    s.check("top lists the parallel program", "load-build" if "load-build" in text else "not there", "load-build" in text)
    text = show(s, "asymctl why load-build")
    s.check("why says that it is parallel", "parallel" if "parallel" in text else "no word", "parallel" in text)
    show(s, "asymctl why load-spin")
    s.sh("taskset -p -c 6-7 $(pidof load-spin) >/dev/null; sleep 4")
    text = show(s, "asymctl why load-spin")
    # The screen may break the line within the command.
    s.check("why says how to take back a program whose mask the user set", "asymctl adopt" if "adopt" in text else "no word",
            "asymctl adopt" in " ".join(text.split()))
    s.sh("asymctl adopt $(pidof load-spin); sleep 4")
    show(s, "asymctl why load-spin")
    show(s, "asymctl metrics --table")


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
    status, text = s.try_sh("setpriv --reuid=visitor --clear-groups --regid=visitor asymctl why load-build")
    s.check("and asks about a program of root, which /proc shows, too", text.splitlines()[0] if text else "no word",
            status == 0)
    status, text = s.try_sh("setpriv --reuid=visitor --clear-groups --regid=visitor "
                            "busctl introspect org.asymd /org/asymd/Manager org.asymd.Manager")
    s.check("and introspects the object with busctl", f"exit status {status}, {len(text.splitlines())} lines",
            status == 0 and ".GetReport" in text)


def summary(answer):
    """The status line of an HTTP answer; of an error the text, too."""
    lines = answer.splitlines()
    return lines[0] if "200" in lines[0] else f"{lines[0]}: {lines[-1]}"


def check_exporter(s):
    s.sh("systemctl start asymd-exporter.socket")
    text = s.sh(get(PORT, "/metrics"))
    s.check("the exporter's socket starts it, and it serves the counters", summary(text),
            "200" in text.splitlines()[0] and "\nasymd_cycles_total " in text and "# EOF" not in text)
    text = s.sh(get(PORT, "/metrics", OPENMETRICS))
    s.check("a client that accepts OpenMetrics gets that", summary(text),
            "200" in text.splitlines()[0] and text.rstrip().endswith("# EOF") and "\nasymd_cycles_total " in text)
    user = s.sh("ps -o user:32= -C asymd-exporter").strip()
    s.check("it runs as a user of its own", user, user == "asymd-exporter")


def ask_prometheus(question):
    """A command that prints the answer of prometheus to a question in its own language."""
    return get(PROMETHEUS_PORT, f"/api/v1/query?query={urllib.parse.quote(question)}")


def check_prometheus(s):
    """Debian's prometheus, with nothing in its configuration but the exporter."""
    s.sh("systemctl stop asymd-exporter.service")
    s.sh(f"cat >/etc/prometheus.yml <<'EOF'\n{PROMETHEUS}\nEOF\n"
         "systemd-run -q --unit=prometheus -p DynamicUser=yes -p StateDirectory=prometheus /usr/bin/prometheus "
         "--config.file=/etc/prometheus.yml --storage.tsdb.path=/var/lib/prometheus "
         f"--web.listen-address=127.0.0.1:{PROMETHEUS_PORT}")
    up = s.until(f"({ask_prometheus('up')}) 2>/dev/null | grep -q ',\"1\"]'", SCRAPE_S)
    text = s.try_sh(ask_prometheus("up"))[1] if up else s.try_sh("journalctl -u prometheus -o cat --no-pager | tail -n 3")[1]
    s.check("prometheus scrapes the exporter, which its socket starts again", text.splitlines()[-1] if text else "no word", up)
    families = s.try_sh(ask_prometheus('count(count by (__name__) ({__name__=~"asymd_.+"}))'))[1]
    number = re.search(r',"(\d+)"\]', families)
    s.check("families of asymd are in its database", number.group(1) if number else families.splitlines()[-1:],
            bool(number) and int(number.group(1)) > 10)
    text = s.try_sh(ask_prometheus("asymd_cycles_total"))[1]
    s.check("one is asymd_cycles_total", text.splitlines()[-1] if text else "no word", '"instance":"127.0.0.1:10642"' in text)
    s.sh("systemctl stop prometheus")


def run(s):
    # As README.md says. The bus daemon began before asymd's policy file was there.
    s.sh("systemd-sysusers; systemctl reload dbus")
    s.start(CONFIG)
    check_name(s)
    check_screens(s)
    check_orders(s)
    check_user(s)
    # What follows needs no load, and is slow enough.
    s.sh("kill $(pidof load-build load-spin)")
    check_exporter(s)
    s.unpack("extras")
    # The bus daemon and systemd read their files again.
    s.sh("systemd-sysusers && systemctl daemon-reload && systemctl reload dbus")
    check_prometheus(s)
    status = json.loads(s.sh("asymctl status --json"))
    s.check("status --json is JSON", sorted(status)[0], isinstance(status, dict))
    s.sh("systemctl stop asymd")
    code, text = s.try_sh("asymctl status")
    s.check("without a service, status ends with 5 and says how to start it", text.splitlines()[0], code == 5 and "start" in text)
