# Boots the root that root.sh made, as the first process of its namespaces.
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
tr -d - <proc/sys/kernel/random/uuid >etc/machine-id
echo "127.0.0.1 localhost $(cat /proc/sys/kernel/hostname)" >etc/hosts
# Timers that would use the network.
rm -f etc/systemd/system/timers.target.wants/apt-daily*
pivot_root . mnt
umount --lazy /mnt
# As systemd itself does on a machine that is not a container: LoadCredential= needs it.
mount --make-rshared /
exec env -i container=haul PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
