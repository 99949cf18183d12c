#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# usage: deb.sh FOLDER: installs the packages of FOLDER, uses them, upgrades, removes and purges them. It changes the system, so
# it runs in a root of ./dev fresh only, which has no systemd as its first process.
set -euo pipefail
[ -e /root/inside.sh ] || { echo "deb.sh runs in ./dev fresh \"deb --try\" only" >&2; exit 2; }
cd "$1"
export DEBIAN_FRONTEND=noninteractive
busy="" service=""
trap '[ -z "$busy$service" ] || kill -s KILL $busy $service 2>/dev/null || true' EXIT

die() { echo "deb.sh: $*" >&2; exit 1; }
say() { echo "== packages: $*" >&2; }

# A changed configuration is kept, as an administrator would answer.
apt() {
    apt-get -y --no-install-recommends -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" >apt.log 2>&1 ||
        { cat apt.log >&2; die "apt-get $*"; }
}

mask() { sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$busy/status"; }

# later NAME: print a package like NAME's, of a later version and with another sample configuration.
later() {
    local folder=later-$1
    dpkg-deb -R "$1"_*.deb "$folder"
    sed -i 's/^Version: .*/Version: 99/; s/(= [0-9.]*)/(= 99)/' "$folder/DEBIAN/control"
    [ ! -e "$folder/etc/asymd/asymd.conf" ] || echo "# of a later version" >>"$folder/etc/asymd/asymd.conf"
    dpkg-deb -b "$folder" "$folder.deb" >/dev/null
    echo "./$folder.deb"
}

packages=(asymd asymd-exporter asymd-ompt libasym-rtx1 libasym-rtx-dev) built=()
for name in "${packages[@]}"; do
    built+=(./"$name"_[0-9]*.deb)
done
say "install"
apt install "${built[@]}"
dpkg -L "${packages[@]}" | sort -u >files
asymd --version | grep -q '^asymd ' && asymd-exporter --version | grep -q '^asymd-exporter ' || die "a program does not start"
asymctl run -- sh -c 'echo "$OMP_TOOL_LIBRARIES"' | grep -q '^/usr/lib/.*/libasym-ompt.so$' || die "asymctl run finds no tool"
for link in multi-user.target.wants/asymd.service sockets.target.wants/asymd-exporter.socket; do
    [ -L "/etc/systemd/system/$link" ] || die "$link is not enabled"
done
getent passwd asymd-exporter >/dev/null || die "the exporter has no user"
printf '#include <asym/rtx.h>\nint main(void) { return asym_rtx_is_joined(); }\n' >rtx.c
# shellcheck disable=SC2046
gcc rtx.c $(pkg-config --cflags --libs asym-rtx) -o rtx && ./rtx || die "a program cannot use libasym-rtx"

say "upgrade"
cp /etc/asymd/asymd.conf before
# shellcheck disable=SC2046
apt install $(for name in "${packages[@]}"; do later "$name"; done)
[ "$(tail -n 1 /etc/asymd/asymd.conf)" = "# of a later version" ] || die "the upgrade left an unchanged configuration as it was"
printf '[asymd]\ninterval = 123ms\n' >/etc/asymd/asymd.conf
apt install --allow-downgrades "${built[@]}"
asymd --print-config | grep -q '^interval.*123ms' || die "the changed configuration is not kept, or not read"
cp before /etc/asymd/asymd.conf

say "remove puts back what a killed asymd has set"
sh -c 'while :; do :; done' & busy=$!
whole=$(mask)
asymd --service --pid="$busy" --slow=1 --slow-speed=50% 2>service.log & service=$!
for ((i = 0; i < 300; i++)); do
    [ "$(mask)" = "$whole" ] || break
    sleep 0.1
done
[ "$(mask)" != "$whole" ] || { cat service.log >&2; die "asymd steers nothing"; }
kill -s KILL "$service"
wait "$service" 2>/dev/null || true
service=""
apt remove "${packages[@]}"
[ "$(mask)" = "$whole" ] || die "a thread has kept CPUs $(mask) of $whole"
[ -e /etc/asymd/asymd.conf ] || die "remove has deleted the configuration"

say "purge"
mkdir -p /var/lib/asymd/profiles /etc/asymd/rules.d
touch /etc/asymd/rules.d/zz-policy.conf
dpkg --purge "${packages[@]}" >apt.log 2>&1 || { cat apt.log >&2; die "dpkg --purge"; }
for path in /etc/asymd /var/lib/asymd /etc/systemd/system/multi-user.target.wants/asymd.service; do
    [ ! -e "$path" ] && [ ! -L "$path" ] || die "purge has left $path"
done
while read -r path; do
    [ -d "$path" ] || { [ ! -e "$path" ] && [ ! -L "$path" ]; } || die "purge has left $path"
done <files
say "passed"
