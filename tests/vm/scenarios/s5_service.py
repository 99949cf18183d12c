# SPDX-License-Identifier: GPL-2.0-or-later
"""asymd as a service: status line, watchdog, sandbox, and its behaviour beside cgroups of other services."""
import re
import time

TITLE = "the service beside its manager and other services"
MACHINE = "big-little"
CONFIG = """[asymd]
cpu_budget = 100
[enforce]
fork_holdoff = 1s"""
WATCHDOG_S = 5
MASKS = "cat /proc/$(systemctl show -P MainPID %s)/task/*/status | grep Cpus_allowed_list: | cut -f2 | sort | uniq -c"


def check_status(s):
    status = s.sh("systemctl status asymd --no-pager -n 0")
    line = next((line.strip() for line in status.splitlines() if "Status:" in line), "none")
    s.check("systemctl status shows policy and CPUs", line, "policy pa on 4 fast and 4 slow CPUs" in line)


def check_security(s):
    text = s.sh("systemd-analyze security asymd --no-pager | grep 'Overall exposure'")
    exposure = float(re.search(r"(\d+\.\d+)", text).group(1))
    s.check("systemd-analyze security finds an exposure of at most 2.6", exposure, exposure <= 2.6)


def check_watchdog(s):
    """systemd kills a stopped daemon, asymd --restore restores what it had set, and a new daemon starts and steers."""
    s.sh("mkdir -p /run/systemd/system/asymd.service.d\n"
         f"printf '[Service]\\nWatchdogSec={WATCHDOG_S}s\\n' >/run/systemd/system/asymd.service.d/watchdog.conf\n"
         "systemctl daemon-reload; systemctl restart asymd")
    s.load("spin 8 300")
    steering = s.until("grep -q '^T' /run/asymd/ledger", 20)
    s.check("it steers before the watchdog", "threads in the ledger" if steering else "an empty ledger", steering)
    before = s.sh("systemctl show -P MainPID asymd")
    s.sh(f"[ {before} -gt 1 ] && kill -STOP {before}")
    new = s.until(f"p=$(systemctl show -P MainPID asymd) && [ $p != 0 ] && [ $p != {before} ] && systemctl -q is-active asymd",
                  8 * WATCHDOG_S)
    s.check(f"stopped for longer than WatchdogSec={WATCHDOG_S}s, it is killed and started again",
            "a new process" if new else "the old one", new)
    killed = s.journal().partition("code=killed, status=6/ABRT")[2]
    left = re.search(r"restored (\d+) threads?.*", killed)
    s.check("ExecStopPost= puts back what the killed one had set", left.group(0) if left else "no word in the journal",
            bool(left) and int(left.group(1)) >= 8)
    again = s.until("grep -q '^T' /run/asymd/ledger", 20)
    s.check("the new one steers", "threads in the ledger" if again else "an empty ledger", again)
    s.sh("kill $(pidof load-spin); rm -r /run/systemd/system/asymd.service.d; systemctl daemon-reload; "
         "systemctl restart asymd")


def check_cpuset(s):
    s.sh("systemd-run -q --unit=caged -p AllowedCPUs=1,5 /opt/load-spin 4 300")
    inside, moved = True, False
    for _ in range(10):
        time.sleep(1)
        seen = [line.split()[1] for line in s.sh(MASKS % "caged").splitlines()]
        inside = inside and not set(",".join(seen).split(",")) - {"1", "5"}
        moved = moved or any(mask in ("1", "5") for mask in seen)
    s.check("a service with AllowedCPUs=1,5 is steered within them", " ".join(seen), inside and moved)
    s.sh("systemctl stop caged")


def check_weight(s):
    s.sh("systemd-run -q --unit=heavy -p CPUWeight=500 /opt/load-spin 1 300")
    line = re.search(r"the cpu controller divides.*nice acts only inside one", " ".join(s.sh("asymd --check").split()))
    s.check("beside a service with CPUWeight= asymd --check warns that nice does nothing across it",
            line.group(0) if line else "no such line", bool(line))
    s.sh("systemctl stop heavy")


def run(s):
    s.start(CONFIG)
    check_status(s)
    check_security(s)
    check_watchdog(s)
    check_cpuset(s)
    check_weight(s)
