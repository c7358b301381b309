//! Lets the disk of the store stop for a while, and fail.

use super::operator::SERVER;
use super::{Block, Operator};

/// Stops the file system below the disk during a PUT.
const STALL: &str = "
fsfreeze --freeze /disk
curl --silent --fail --upload-file /etc/hostname $SERVER/bucket/slow &
sleep 1
fsfreeze --unfreeze /disk
wait $!
";

/// Stalls the disk during a PUT, and runs the commands that search for the reason.
pub(super) fn slow_syncs(operator: &Operator, blocks: Vec<Block>) {
    let [look] = blocks.try_into().unwrap();
    operator.start_empty();
    assert_eq!(operator.put("bucket", ""), 200);
    assert_eq!(operator.put("bucket/fast", "content"), 200);
    let metric = || {
        let (_, page) = operator.curl(&["http://127.0.0.1:9001/metrics"]);
        let mut lines = page.lines();
        let sum = lines.find_map(|line| line.strip_prefix("haul_sync_duration_seconds_sum "));
        sum.unwrap().parse::<f64>().unwrap()
    };
    let before = metric();
    operator.machine.shell(&STALL.replace("$SERVER", SERVER));
    assert!(metric() - before > 0.5, "{} s, before {before} s", metric());
    let printed = operator.run(&look);
    for part in ["file system    ext4", "vm.dirty_", "durable writes"] {
        assert!(printed.contains(part), "no {part} in {printed}");
    }
}

/// Makes another file system for the store, without a journal: one that cannot be written makes a
/// file system read-only.
const REPLACE: &str = "
systemctl stop haul-serve
umount /var/lib/haul
rm /disk/store.img
truncate --size 1G /disk/store.img
mkfs.ext4 -q -F -m 0 -O ^has_journal /disk/store.img
mount -o loop,noatime /disk/store.img /var/lib/haul
install --directory --owner haul --group haul --mode 700 /var/lib/haul
systemctl start haul-serve
";

/// Takes the space of the unused part of the volume, which is zero-filled, from the disk, and fills
/// the file system below it: writes to this part fail.
const FAIL: &str = "
sync
filefrag -b4096 -v /var/lib/haul/store/volumes/0000000001.segment |
    awk -F '[ .:]+' '$2 ~ /^[0-9]+$/ && $3 ~ /^[0-9]+$/ {
        used = $3 < 64 ? 64 - $3 : 0
        if ($7 > used) print ($5 + used) * 4096, ($7 - used) * 4096
    }' >/tmp/ranges
test -s /tmp/ranges
while read offset length; do
    fallocate --punch-hole --offset $offset --length $length /disk/store.img
done </tmp/ranges
sync --file-system /disk
fallocate --length $(df --output=avail --block-size=1 /disk | tail -1) /disk/filler || true
dd if=/dev/zero of=/disk/rest bs=4096 2>/dev/null || true
sync --file-system /disk
";

/// Lets a sync fail, repairs the disk, and restarts the service.
pub(super) fn failed_sync(operator: &Operator, blocks: Vec<Block>) {
    let [restart] = blocks.try_into().unwrap();
    let machine = &operator.machine;
    machine.shell(REPLACE);
    assert_eq!(operator.put("bucket", ""), 200);
    assert_eq!(operator.put("bucket/acknowledged", "content"), 200);
    machine.shell(FAIL);
    let put = format!(
        "head --bytes 1M /dev/urandom >/tmp/part
        for number in $(seq 200); do
            status=$(curl --silent --output /tmp/answer --write-out '%{{http_code}}' \\
                --upload-file /tmp/part {SERVER}/bucket/$number)
            [ $status = 200 ] || break
        done
        echo $status; cat /tmp/answer"
    );
    let answer = machine.shell(&put);
    println!("{answer}");
    let health = operator.health();
    assert!(health.0 == 503 && health.1.contains("sync"), "{health:?}");
    assert_eq!(operator.get("bucket/acknowledged"), (200, "content".to_owned()));
    assert_eq!(operator.put("bucket/refused", "content"), 503);

    machine.shell("rm /disk/filler /disk/rest; sync --file-system /disk; journalctl --sync");
    let printed = operator.run(&restart);
    // The journal has refusals of the sections before, too.
    let refused = ["requests are refused", "accepts no changes until it is restarted"];
    let is_told = |line: &&str| refused.iter().all(|part| line.contains(part));
    assert_eq!(printed.lines().filter(is_told).count(), 1, "at most once a minute: {printed}");
    let reason = "cannot sync /var/lib/haul/store/volumes";
    assert!(printed.contains(reason) && printed.contains("I/O error"), "{printed}");
    assert_eq!(operator.health().0, 200);
    assert_eq!(operator.get("bucket/acknowledged"), (200, "content".to_owned()));
    assert_eq!(operator.put("bucket/after", "content"), 200);
}
