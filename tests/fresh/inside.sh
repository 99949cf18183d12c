#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The part of ./dev fresh that makes a folder the root of new namespaces, and makes a user there.
#   inside.sh make-user ROOT CLONE          makes an ordinary user in ROOT, who owns a copy of the clone
#   inside.sh enter ROOT USER COMMAND       runs as the first process of the namespaces; USER: root, user or sudoer
set -euo pipefail
# The kernel counts limits by user id, whatever the root directory. So the id is one that hardly any other user has.
user=fresh
uid=59733

make_user() {
    local root=$1 home=$1/home/$user
    echo "$user:x:$uid:$uid::/home/$user:/bin/bash" >>"$root/etc/passwd"
    echo "$user:x:$uid:" >>"$root/etc/group"
    echo "$user:*:19000:0:99999:7:::" >>"$root/etc/shadow"
    mkdir -p "$home"
    cp -a "$2" "$home/asymd"
    chown -R "$uid:$uid" "$home"
}

# Mount the file systems that a machine without systemd has. Devices are this machine's; terminals and shared memory are new.
mount_all() {
    local root=$1
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
    mount -t sysfs -o nosuid,nodev,noexec sysfs "$root/sys"
    mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
    mount --bind /dev "$root/dev"
    mkdir -p "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
    mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root/run"
}

enter() {
    local root=$1
    mount_all "$root"
    hostname fresh 2>/dev/null || echo fresh >/proc/sys/kernel/hostname
    cd "$root"
    mkdir -p old-root
    pivot_root . old-root
    cd /
    # The new root has no umount. Run the old root's umount there, on its own /.
    chroot /old-root umount --no-canonicalize --internal-only --lazy /
    rmdir /old-root
    exec /root/inside.sh run "$2" "$3"
}

# Pass on only the proxies of the caller's environment. Warnings of the compiler are errors here. The shell stays as the first
# process of the PID namespace, which must wait for orphans.
run() {
    local who=(setpriv "--reuid=$uid" "--regid=$uid" --init-groups) home=/home/$user variable keep=()
    for variable in http_proxy https_proxy no_proxy; do
        [ -z "${!variable:-}" ] || keep+=("$variable=${!variable}")
    done
    rm -f /etc/sudoers.d/fresh
    case $1 in
        root) who=() home=/root ;;
        sudoer) (umask 337 && echo "$user ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/fresh) ;;
    esac
    [ ! -e /usr/sbin/update-ca-certificates ] || update-ca-certificates >/dev/null 2>&1
    cd "$home/asymd"
    "${who[@]}" env -i "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "HOME=$home" "TERM=${TERM:-dumb}" \
        LANG=C.UTF-8 ASYM_WERROR=ON "${keep[@]}" bash -c "$2" &
    wait $!
}

"${1//-/_}" "${@:2}"
