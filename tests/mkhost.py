#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mkhost.py FILE.host DIR: writes the /sys and /proc of the machine of FILE below DIR, as far as asymd reads them.
It removes a DIR that exists.

The format is in tests/data/hosts/README.md."""
import os
import shutil
import sys

CPU = "sys/devices/system/cpu"


def numbers(text):
    """From the kernel's list format: "0-3,8" to [0, 1, 2, 3, 8]."""
    result = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        result += range(int(low), int(high or low) + 1)
    return result


def listed(cpus):
    """To the kernel's list format."""
    parts, cpus = [], sorted(cpus)
    while cpus:
        n = 1
        while n < len(cpus) and cpus[n] == cpus[0] + n:
            n += 1
        parts.append(str(cpus[0]) if n == 1 else "%d-%d" % (cpus[0], cpus[n - 1]))
        cpus = cpus[n:]
    return ",".join(parts)


def mask(cpus):
    digits = "%x" % sum(1 << c for c in cpus)
    digits = digits.zfill(-(-len(digits) // 8) * 8)
    return ",".join(digits[i:i + 8] for i in range(0, len(digits), 8))


class Host:
    def __init__(self):
        self.cpus = {}
        self.offline, self.cpuset, self.vendor = [], None, "GenuineIntel"
        self.files, self.missing, self.flags = [], [], None

    def take(self, words, rest):
        if words[0] == "cpus":
            settings = dict(word.split("=", 1) for word in words[2:])
            line = numbers(words[1])
            for place, cpu in enumerate(line):
                self.cpus.setdefault(cpu, {"line": line, "place": place}).update(settings)
        elif words[0] == "offline":
            self.offline = numbers(words[1])
        elif words[0] == "cpuset":
            self.cpuset = words[1]
        elif words[0] == "vendor":
            self.vendor = words[1]
        elif words[0] == "flags":
            self.flags = rest.split(None, 1)[1]
        elif words[0] == "file":
            self.files.append((words[1], rest.split(None, 2)[2]))
        elif words[0] == "missing":
            self.missing.append(words[1])
        else:
            raise ValueError("neither cpus, offline, cpuset, vendor, flags, file nor missing: " + words[0])

    def together(self, cpu, key, alone):
        """CPUs of the same line that share the unit of key: key=2 pairs neighbours, key=+8 each with the eighth after it."""
        own = self.cpus[cpu]
        span, line, place = own.get(key, alone), own["line"], own["place"]
        if span == "all":
            return line
        if span.startswith("+"):
            step = int(span)
            low = place if place % (2 * step) < step else place - step
            return [line[low], line[low + step]]
        low = place // int(span) * int(span)
        return line[low:low + int(span)]

    def same(self, key, cpu):
        return [c for c, d in self.cpus.items() if d.get(key) == self.cpus[cpu].get(key)]


def write(root, path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
        f.write(text + "\n")


def write_cache(root, host, cpu, level, shared, kib):
    base = "%s/cpu%d/cache/index%d/" % (CPU, cpu, level)
    shared = [c for c in shared if c not in host.offline]
    for name, value in (("level", level), ("type", "Unified"), ("size", "%sK" % kib), ("coherency_line_size", 64),
                        ("shared_cpu_list", listed(shared)), ("shared_cpu_map", mask(shared))):
        write(root, base + name, str(value))


def write_cpu(root, host, cpu):
    own, base = host.cpus[cpu], "%s/cpu%d/" % (CPU, cpu)
    if cpu > 0:
        write(root, base + "online", "0" if cpu in host.offline else "1")
    if cpu in host.offline:
        return
    core = [c for c in host.together(cpu, "threads", "1") if c not in host.offline]
    package = [c for c in host.same("package", cpu) if c not in host.offline]
    for name, value in (("core_id", min(core)), ("physical_package_id", own.get("package", "0")),
                        ("thread_siblings", mask(core)), ("core_siblings", mask(package)),
                        ("thread_siblings_list", listed(core)), ("core_siblings_list", listed(package)),
                        ("core_cpus", mask(core)), ("package_cpus", mask(package))):
        write(root, base + "topology/" + name, str(value))
    if "l2_kib" in own:
        write_cache(root, host, cpu, 2, host.together(cpu, "l2", own.get("threads", "1")), own["l2_kib"])
    if "l3" in own:
        write_cache(root, host, cpu, 3, host.same("l3", cpu), own["l3_kib"])
    domain = host.together(cpu, "domain", "1")
    for key, name in (("capacity", "cpu_capacity"), ("cppc", "acpi_cppc/highest_perf"),
                      ("min_khz", "cpufreq/cpuinfo_min_freq"), ("max_khz", "cpufreq/cpuinfo_max_freq"),
                      ("base_khz", "cpufreq/base_frequency"), ("cap_khz", "cpufreq/scaling_max_freq"),
                      ("driver", "cpufreq/scaling_driver"), ("midr", "regs/identification/midr_el1"), ("prefcore", "cpufreq/amd_pstate_prefcore_ranking")):
        if key in own:
            values = own[key].split(",")
            write(root, base + name, values[own["place"] % len(values)])
    if "max_khz" in own:
        write(root, base + "cpufreq/related_cpus", " ".join(str(c) for c in domain))


def write_machine(root, host):
    online = [c for c in host.cpus if c not in host.offline]
    for name, cpus in (("possible", host.cpus), ("present", host.cpus), ("online", online)):
        write(root, "%s/%s" % (CPU, name), listed(cpus))
    for cpu in host.cpus:
        write_cpu(root, host, cpu)
    for node in sorted({d.get("node", "0") for d in host.cpus.values()}):
        cpus = [c for c in online if host.cpus[c].get("node", "0") == node]
        write(root, "sys/devices/system/node/node%s/cpumap" % node, mask(cpus))
        write(root, "sys/devices/system/node/node%s/cpulist" % node, listed(cpus))
        write(root, "sys/devices/system/node/node%s/meminfo" % node, "Node %s MemTotal: 8388608 kB" % node)
    nodes = sorted({int(d.get("node", "0")) for d in host.cpus.values()})
    write(root, "sys/devices/system/node/online", listed(nodes))
    for pmu in sorted({d["pmu"] for d in host.cpus.values() if "pmu" in d}):
        write(root, "sys/devices/%s/cpus" % pmu, listed(c for c in online if host.cpus[c].get("pmu") == pmu))
    flags = "flags\t\t: %s\n" % host.flags if host.flags else ""
    write(root, "proc/cpuinfo", "\n".join("processor\t: %d\nvendor_id\t: %s\n%s" % (c, host.vendor, flags) for c in online))
    if host.cpuset:
        write(root, "sys/fs/cgroup/cpuset.cpus.effective", host.cpuset)
    for path, text in host.files:
        write(root, path, text)
    for path in host.missing:
        gone = os.path.join(root, path)
        if os.path.isdir(gone):
            shutil.rmtree(gone)
        else:
            os.remove(gone)


def make(path, root):
    """Write the machine of the file path below root, which is made anew. Ends the program if the file is wrong."""
    host = Host()
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.split("#")[0].strip()
            try:
                if line:
                    host.take(line.split(), line)
            except (ValueError, IndexError, KeyError) as e:
                sys.exit("%s:%d: %s" % (path, number, e))
    shutil.rmtree(root, ignore_errors=True)
    write_machine(root, host)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: mkhost.py FILE.host DIR")
    make(*sys.argv[1:])
