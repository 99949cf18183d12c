#!/bin/sh
# The service unit of a build tree: clean for systemd-analyze verify, and exposed by at most 3.0.
# usage: unit.sh BUILD_DIR
set -eu
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The program is not installed where the unit says: verify looks for an executable, so give it the built one.
sed "s#=[^ ]*/asymd\\( \\|\$\\)#=$(readlink -f "$build/daemon/asymd")\\1#" "$build/systemd/asymd.service" > "$work/asymd.service"

said=$(systemd-analyze verify --man=no "$work/asymd.service" 2>&1 | grep asymd.service || true)
if [ -n "$said" ]; then
    printf 'systemd-analyze verify: %s\n' "$said" >&2
    exit 1
fi
systemd-analyze security --offline=true --threshold=30 --no-pager "$work/asymd.service" > "$work/security" || {
    cat "$work/security" >&2
    exit 1
}
grep 'Overall exposure' "$work/security"
