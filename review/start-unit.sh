# starts asymd afresh on a new tmpfs
umount -l /tmp/rtxr/state/rtx 2>/dev/null; mkdir -p /tmp/rtxr/state/rtx
mount -t tmpfs -o nosuid,nodev,noexec,noatime,mode=711,size=64m,nr_inodes=8192 asym-rtx /tmp/rtxr/state/rtx
setsid setpriv --bounding-set=-all,+sys_nice,+net_admin,+sys_ptrace,+perfmon --inh-caps=-all --no-new-privs build/release/daemon/asymd --service --interval=50ms --policy=pa --slow=1 --set=asymd.state_dir=/tmp/rtxr/state --pid=$(cat /tmp/rtxr/top.pid) >/tmp/rtxr/asymd.log 2>&1 &
echo $! >/tmp/rtxr/asymd.pid
