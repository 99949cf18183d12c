#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes the kernel and the Debian 12 guest of the virtual machine test, from the host's own apt sources, in
# ${ASYM_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/asymd-vm}. Run it at any time: it repeats a step only if the step's input
# has changed. Remove the cache for a newer kernel or newer packages. ./dev vm installs the packages that this script uses.
# ASYM_VM_KERNEL=sid: the guest has the kernel of that Debian instead, and a cache of its own, which is below the other one.
# usage: setup.sh [MACHINE...] [extras] [compiler] [programs] [scx]: these machines beside the two that it always makes, and
# NAME.tar of the others. arm64 is alone: setup.sh arm64 PACKAGE... makes this machine, and the directory sysroot with its root and
# these packages, for the cross-compiler. Its files are in arm64 below the cache.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${ASYM_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/asymd-vm}
export ASYM_VM_CACHE=$cache PATH=$PATH:/usr/sbin:/sbin
newer=${ASYM_VM_KERNEL:-}
cache=$cache${newer:+/$newer}

modules="virtio_pci virtio_blk virtio_console 9pnet_virtio 9p ext4 overlay acpi-cpufreq cpufreq_userspace
    cpufreq_powersave cpufreq_ondemand msr"

say() { printf 'vm setup: %s\n' "$*" >&2; }
. "$here/../support/progress.sh"

# What several steps call. A step is made anew if one of these changes, too.
common=(bootstrap archives unpack unpack_into inside)

# step NAME COMMAND...: run the command, unless the same function ran before with the same standard input.
step() {
    local name=$1 started=$SECONDS inputs status=0 ticker
    shift
    inputs=$({ declare -f "$1" "${common[@]}" || true; cat; } | sha256sum)
    [ "$(cat "$cache/done.$name" 2>/dev/null)" = "$inputs" ] && return
    rm -f "$cache/done.$name"
    progress_tick "vm setup: $name" "$cache/$name.log" & ticker=$!
    # "|| ..." on the command itself would switch off errexit inside the step.
    "$@" >"$cache/$name.log" 2>&1 </dev/null &
    wait $! || status=$?
    progress_end "$ticker"
    if [ "$status" -ne 0 ]; then
        tail -n 30 "$cache/$name.log" >&2
        say "$name failed; $cache/$name.log has the whole of it"
        exit 1
    fi
    echo "$inputs" >"$cache/done.$name"
    say "$name: $((SECONDS - started)) s"
}

# The guest's architecture, and the options by which apt has its packages.
arch=amd64 apt=(-o APT::Sandbox::User=root)

# The package lists may be so old that they name deleted packages. Refresh them once.
apt_update() {
    [ -e "$work/$arch-updated" ] || apt-get "${apt[@]}" update -q
    touch "$work/$arch-updated"
}

# Print the Debian archives among the host's apt sources.
archives() {
    # shellcheck disable=SC2016 # apt expands these
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
        sort -u | grep .
}

# bootstrap SUITE ROOT PACKAGES: a minimal Debian of these archives (standard input), with these packages.
bootstrap() {
    local proxy=() line
    while read -r line; do
        proxy+=("--aptopt=$line")
    done < <(apt-config dump | grep -E '^Acquire::(https?::Proxy|Check-)')
    mmdebstrap --variant=minbase --include="$3" --aptopt='Acquire::Languages "none"' "${proxy[@]}" \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' "$1" "$2" -
}

# Make a root of the newer Debian. What is built for its kernel is built there: this host's tools are too old.
root() {
    local root=$work/newer
    apt_update
    archives | sed -n "s/ bookworm / $newer /p" |
        bootstrap "$newer" "$root" linux-headers-amd64,make,ca-certificates,cargo,clang,pkg-config,libelf-dev,zlib1g-dev,libseccomp-dev
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    cp -L /etc/resolv.conf "$root/etc/"
    rm -rf "$cache/root"
    mv "$root" "$cache/root"
}

inside() {
    unshare --mount --pid --fork --kill-child --root="$cache/root" --mount-proc /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin nice -n 10 "$@"
}

# The same as kernel for the newer Debian, which splits the package, and compresses modules.
kernel_newer() {
    local version package parts
    version=$(ls "$cache/root/usr/lib/modules")
    rm -rf "$cache/root/work"
    mkdir "$cache/root/work"
    parts=("linux-base-$version" "linux-binary-$version" "linux-modules-$version")
    inside apt-get update -q
    # shellcheck disable=SC2016 # the inner shell expands it
    inside sh -c 'cd /work && apt-get download -o APT::Sandbox::User=root "$@"' sh "${parts[@]}"
    for package in "$cache"/root/work/*.deb; do
        dpkg-deb -x "$package" "$work/kernel"
    done
    mv "$work/kernel/usr/lib" "$work/kernel/lib"
    cp "$work/kernel/lib/modules/$version/vmlinuz" "$cache/vmlinuz"
    find "$work/kernel/lib/modules" -name '*.ko.xz' -exec unxz {} +
    depmod -b "$work/kernel" "$version"
    rm -rf "$cache/kernel"
    mv "$work/kernel" "$cache/kernel"
}

# Build tests/vm/burn for the newer kernel.
burn() {
    rm -rf "$cache/root/work"
    cp -r "$here/burn" "$cache/root/work"
    inside make -s -C "/usr/lib/modules/$(ls "$cache/root/usr/lib/modules")/build" M=/work modules
    cp "$cache/root/work/burn.ko" "$cache/"
}

# Download and unpack the package on which linux-image-ARCH depends. It is not installed.
kernel() {
    local package
    apt_update
    package=$(apt-cache "${apt[@]}" depends "linux-image-$arch" | awk '$1 == "Depends:" { print $2; exit }')
    (cd "$work" && apt-get "${apt[@]}" download "$package" && dpkg-deb -x "$package"_*.deb kernel)
    depmod -b "$work/kernel" "${package#linux-image-}"
    rm -rf "$cache/kernel"
    mv "$work/kernel" "$cache/kernel"
    cp "$cache/kernel/boot/vmlinuz-${package#linux-image-}" "$cache/vmlinuz"
}

# Pack busybox, the modules and guest/init, which find the root file system.
initramfs() {
    local root=$work/initramfs version applet file
    version=$(ls "$cache/kernel/lib/modules")
    mkdir -p "$root"/{bin,proc,sys,dev,lower,changes,newroot}
    apt_update
    (cd "$work" && apt-get "${apt[@]}" download busybox-static && dpkg-deb -x busybox-static_*.deb busybox)
    mv "$work/busybox/bin/busybox" "$root/bin/"
    for applet in sh mount umount modprobe mkdir sleep switch_root; do
        ln -s busybox "$root/bin/$applet"
    done
    ln -s bin "$root/sbin" # the kernel runs /sbin/modprobe: ext4 needs crc32c
    cp "$here/guest/init" "$root/init"
    for file in $modules; do
        modprobe -d "$cache/kernel" -S "$version" --show-depends "$file" | awk '$1 == "insmod" { print $2 }'
    done | sort -u | while read -r file; do
        install -D -m 644 "$file" "$root/${file#"$cache/kernel/"}"
    done
    cp "$cache/kernel/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$version/"
    depmod -b "$root" "$version"
    rm -rf "$cache/modules"
    cp -a "$root/lib/modules" "$cache/modules"
    (cd "$root" && find . | cpio -o -H newc --quiet) >"$work/initramfs.img"
    mv "$work/initramfs.img" "$cache/initramfs"
}

acpi() {
    local machine
    for machine in flat big-little eight-speeds eight-equal burn burn-eight; do
        "$here/machines.py" "$machine" >"$work/$machine.asl"
        iasl -p "$cache/$machine" "$work/$machine.asl"
    done
}

rootfs() {
    local root=$work/root units=$work/root/etc/systemd/system line
    apt_update
    archives | bootstrap bookworm "$root" "$(grep -v '^#' "$here/guest/packages.txt" | paste -sd,)"
    install -m 755 "$here/guest/agent" "$root/usr/local/sbin/vm-agent"
    install -m 644 "$here/guest/agent.service" "$units/vm-agent.service"
    mkdir -p "$units/graphical.target.wants" "$root/host"
    ln -s ../vm-agent.service "$units/graphical.target.wants/"
    ln -sf /lib/systemd/system/graphical.target "$units/default.target"
    rm -rf "$units"/{getty,timers}.target.wants
    grep -v '^#' "$here/guest/masked.txt" | while read -r line; do
        ln -sf /dev/null "$units/$line"
    done
    cp -a "$cache/modules" "$root/usr/lib/"
    echo vm >"$root/etc/hostname"
    echo "127.0.0.1 localhost vm" >"$root/etc/hosts"
    rm -rf "$root"/var/{cache/apt,lib/apt/lists}/*
    mke2fs -q -t ext4 -d "$root" "$work/rootfs" 1500M
    mv "$work/rootfs" "$cache/rootfs"
}

# unpack DIR PACKAGE...: unpack these packages, with all that the root file system lacks of what they depend on. No script of theirs
# runs.
unpack() {
    local root=$1 options=("${apt[@]}" -o "Dir::State::status=$work/status" -o "Dir::Cache::archives=$root.archives")
    shift
    apt_update
    mkdir -p "$root.archives/partial" "$root"
    debugfs -R "dump /var/lib/dpkg/status $work/status" "$cache/rootfs"
    apt-get "${options[@]}" install -y --no-install-recommends --download-only "$@"
    unpack_into "$root" "$root".archives/*.deb
}

# A directory of a package leaves a link to a directory in place.
unpack_into() {
    local root=$1 package
    shift
    for package; do
        dpkg-deb --fsys-tarfile "$package" | tar -C "$root" --keep-directory-symlink -xpf -
    done
}

# Pack what only some scenarios need: Debian's prometheus without its web pages.
extras() {
    local root=$work/extras
    mkdir -p "$root.archives" "$root"
    (cd "$root.archives" && apt-get "${apt[@]}" download prometheus)
    unpack_into "$root" "$root".archives/*.deb
    rm -r "$root/usr/share" "$root/etc"
    find "$root" ! -type d -name 'prom*' ! -path "$root/usr/bin/prometheus" -delete
    tar -C "$root" --owner=0 --group=0 -cf "$work/extras.tar" .
    mv "$work/extras.tar" "$cache/extras.tar"
}

# Pack gcc for C, with make, without what no small program needs.
compiler() {
    local root=$work/compiler
    unpack "$root" gcc libc6-dev make
    rm -rf "$root"/usr/share/{doc,man,locale,info,lintian} "$root"/usr/lib/gcc/x86_64-linux-gnu/*/lto1
    find "$root" ! -type d \( -name 'lib*san*' -o -name '*gold' -o -name '*dwp' \) -delete
    tar -C "$root" --owner=0 --group=0 -cf "$work/compiler.tar" .
    mv "$work/compiler.tar" "$cache/compiler.tar"
}

# Pack the programs of real.py. Their data come with the database's templates; pgbench is in the server's package.
programs() {
    local root=$work/programs
    unpack "$root" xz-utils p7zip-full sysbench x264 rt-tests postgresql-15
    rm -rf "$root"/usr/share/{doc,man,locale,info,lintian,perl*,python*} "$root"/usr/lib/{python*,llvm*} "$root"/usr/lib/*/perl*
    rm -rf "$root"/usr/lib/postgresql/15/lib/bitcode "$root"/usr/lib/*/{libLLVM*,libz3*,mfx,libmfxhw64*} "$root"/usr/share/i18n
    tar -C "$root" --owner=0 --group=0 -cf "$work/programs.tar" .
    mv "$work/programs.tar" "$cache/programs.tar"
}

# Pack two schedulers of sched_ext, with the libraries that they link, because the guest's are older, and the kernel's
# configuration, which they read.
scx() {
    local root=$work/scx version name
    version=$(ls "$cache/kernel/lib/modules")
    inside cargo install --locked --root /opt/scx scx_lavd@1.1.4 scx_bpfland@1.1.4
    mkdir -p "$root/opt/scx" "$root/boot"
    inside ldd /opt/scx/bin/scx_lavd /opt/scx/bin/scx_bpfland | grep -oE '/[^ :]+\.so[^ :]*' | sort -u | while read -r name; do
        cp "$cache/root/$(inside readlink -f "$name")" "$root/opt/scx/${name##*/}"
    done
    cp "$cache"/root/opt/scx/bin/scx_* "$root/opt/scx/"
    cp "$cache/kernel/lib/modules/$version/config" "$root/boot/config-$version"
    tar -C "$root" --owner=0 --group=0 -cf "$work/scx.tar" .
    mv "$work/scx.tar" "$cache/scx.tar"
}

# The root of arm64 is that of amd64, with the files of the same packages of arm64 in place: so no script of a package has to run
# under an emulator.
rootfs_of_arm64() {
    local root=$work/root
    apt_update
    mkdir -p "$root" "$work/debs"
    debugfs -R "rdump / $root" "$base/rootfs"
    dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Package}\n' >"$work/names"
    (cd "$work/debs" && xargs apt-get "${apt[@]}" download <"$work/names")
    rm -rf "$root"/usr/lib/{x86_64-linux-gnu,modules} "$root"/usr/lib64
    unpack_into "$root" "$work"/debs/*.deb
    sed -i 's/^Architecture: amd64$/Architecture: arm64/' "$root/var/lib/dpkg/status"
    cp -a "$cache/modules" "$root/usr/lib/"
    rm -rf "$root"/{lost+found,usr/share/{man,doc,locale}}
    mke2fs -q -t ext4 -d "$root" "$work/rootfs" 1500M
    mv "$work/rootfs" "$cache/rootfs"
}

# sysroot PACKAGE...: the root with these packages, for the cross-compiler. A link to a path from / would lead out of it.
sysroot() {
    local root=$work/sysroot link
    mkdir -p "$root"
    debugfs -R "rdump / $root" "$cache/rootfs"
    unpack "$root" "$@"
    find "$root/usr/lib" -type l -lname '/*' | while read -r link; do
        ln -sfr "$root$(readlink "$link")" "$link"
    done
    rm -rf "$cache/sysroot"
    mv "$root" "$cache/sysroot"
}

# The headers for a module, with the programs of its build for this host. Their paths are those below the cache.
headers() {
    local release
    release=$(ls "$cache/kernel/lib/modules")
    mkdir -p "$work/headers" "$work/header-debs"
    (cd "$work/header-debs" && apt-get "${apt[@]}" download "linux-headers-$release" "linux-headers-${release%-*}-common" &&
        apt-get download -o APT::Sandbox::User=root "linux-kbuild-${release%.*}")
    unpack_into "$work/headers" "$work"/header-debs/*.deb
    sed -i "s#/usr/src#$cache/headers/usr/src#" "$work/headers/usr/src/linux-headers-$release/Makefile"
    rm -rf "$cache/headers"
    mv "$work/headers" "$cache/headers"
}

# The machine's own device tree, with the capacity of each CPU. The kernel takes CPUs for equal if one has none.
device_tree() {
    local cpu capacity
    "$here/vm.py" --machine arm64 --device-tree "$work/arm64.dtb"
    "$here/machines.py" arm64 | while read -r cpu capacity; do
        fdtput -t i "$work/arm64.dtb" "/cpus/cpu@$cpu" capacity-dmips-mhz "$capacity"
    done
    mv "$work/arm64.dtb" "$cache/arm64.dtb"
}

# A guest of another architecture, with lists of packages of its own.
arm64() {
    local base=$cache
    cache=$cache/arm64 work=$work/arm64 arch=arm64 modules=${modules/acpi-cpufreq*/}
    apt+=(-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$cache/apt" -o "Dir::Cache=$cache/apt"
        -o "Dir::State::status=$cache/apt/status")
    mkdir -p "$cache"/apt/{lists,archives}/partial "$work"
    : >"$cache/apt/status"
    step kernel kernel <<<"linux-image-arm64"
    step initramfs initramfs < <(cat "$cache/done.kernel" "$here/guest/init" - <<<"$modules")
    step rootfs rootfs_of_arm64 < <(cat "$cache/done.initramfs" "$base/done.rootfs")
    step sysroot sysroot "$@" < <(cat "$cache/done.rootfs" - <<<"$*")
    step headers headers <"$cache/done.kernel"
    step device-tree device_tree <"$here/machines.py"
    snapshot arm64
}

snapshot() { step "snapshot-$1" "$here/vm.py" --machine "$1" --save-snapshot < <("$here/vm.py" --machine "$1" --snapshot-key); }

[ "$(id -u)" -eq 0 ] || { say "needs root: it installs packages, builds a root file system, and limits CPUs"; exit 1; }
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
scratch=$(mktemp -d "$cache/work.XXXXXX") work=$scratch
trap 'rm -rf "$scratch"' EXIT

if [ -n "$newer" ]; then
    step root root </dev/null
    step kernel kernel_newer <"$cache/done.root"
    step burn burn < <(cat "$cache/done.kernel" "$here"/burn/*)
else
    step kernel kernel <<<"linux-image-amd64"
fi
step initramfs initramfs < <(cat "$cache/done.kernel" "$here/guest/init" - <<<"$modules")
step acpi acpi <"$here/machines.py"
step rootfs rootfs < <(cat "$cache/done.initramfs" "$here"/guest/*)
if [ "${1-}" = arm64 ]; then
    arm64 "${@:2}"
    exit
fi
machines=(flat big-little)
for argument; do
    if [[ " extras compiler programs scx " = *" $argument "* ]]; then
        step "$argument" "$argument" <"$cache/done.rootfs"
    else
        machines+=("$argument")
        [ "$argument" != burn ] || [ -n "$newer" ] || step headers headers <"$cache/done.kernel"
    fi
done
# A boot has one thread, so the machines boot at the same time.
snapshots=() status=0
for machine in "${machines[@]}"; do
    snapshot "$machine" &
    snapshots+=($!)
done
for machine in "${snapshots[@]}"; do
    wait "$machine" || status=$?
done
exit $status
