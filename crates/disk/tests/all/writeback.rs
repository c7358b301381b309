//! Tests the writeback settings and facts read from fake `/proc` and `/sys` directories, and from
//! those of this machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use haul_disk::{Amount, DiskKind, FileSystem, KernelFiles, PAGE_BYTES, probe};
use haul_testing::LoopImage;
use tempfile::TempDir;

/// A fake machine: its `/proc` and `/sys` in a directory.
struct Fake(TempDir);

impl Fake {
    /// Creates a machine with default settings and 8 GiB of dirtyable memory.
    fn new() -> Self {
        let fake = Self(tempfile::tempdir().unwrap());
        for (name, value) in [
            ("dirty_background_ratio", "10"),
            ("dirty_background_bytes", "0"),
            ("dirty_ratio", "20"),
            ("dirty_bytes", "0"),
            ("dirty_expire_centisecs", "3000"),
            ("dirty_writeback_centisecs", "500"),
            ("laptop_mode", "0"),
        ] {
            fake.file(&format!("proc/sys/vm/{name}"), value);
        }
        fake.file(
            "proc/meminfo",
            "MemTotal: 16777216 kB\nMemFree: 4194304 kB\nActive(file): 1048576 kB\n\
             Inactive(file): 3145728 kB\nDirty: 1024 kB\nWriteback: 0 kB\nSwapTotal: 0 kB",
        );
        fake
    }

    fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    /// Adds a whole disk.
    fn disk(&self, name: &str, numbers: &str, queue: &[(&str, &str)]) -> &Self {
        for (file, value) in queue {
            self.file(&format!("sys/block/{name}/queue/{file}"), value);
        }
        let dir = self.0.path().join("sys/devices/block").join(name);
        fs::create_dir_all(&dir).unwrap();
        self.link(name, numbers, &format!("../../devices/block/{name}"))
    }

    fn partition(&self, disk: &str, name: &str, numbers: &str) -> &Self {
        self.file(&format!("sys/devices/block/{disk}/{name}/partition"), "1");
        self.link(name, numbers, &format!("../../devices/block/{disk}/{name}"))
    }

    /// Creates two links in `/sys` to the directory of a device, one named by its number and one by
    /// its name.
    fn link(&self, name: &str, numbers: &str, to: &str) -> &Self {
        for (dir, link) in [("sys/dev/block", numbers), ("sys/class/block", name)] {
            let dir = self.0.path().join(dir);
            fs::create_dir_all(&dir).unwrap();
            symlink(to, dir.join(link)).unwrap();
        }
        self.file(
            &format!("sys/devices/block/{}/dev", to.rsplit_once("block/").unwrap().1),
            numbers,
        )
    }

    fn files(&self) -> KernelFiles {
        KernelFiles::below(self.0.path())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }
}

const SATA: &[(&str, &str)] = &[
    ("rotational", "1"),
    ("write_cache", "write back"),
    ("read_ahead_kb", "128"),
    ("nr_requests", "64"),
    ("scheduler", "none [mq-deadline] bfq"),
    ("wbt_lat_usec", "75000"),
    ("zoned", "none"),
];

#[test]
fn machine_is_read_from_its_files() {
    let fake = Fake::new();
    let files = fake.files();
    let machine = files.machine();
    assert_eq!(machine.settings.limit(), Some(Amount::Percent(20)));
    assert_eq!(machine.memory.dirtyable_bytes(), Some(8 << 30));
    let limits = machine.limits().unwrap();
    assert_eq!(limits.limit_bytes, (8 << 30) / 4096 * 819 / PAGE_BYTES as u64 * 4096);
    assert_eq!((machine.kernel_limits, machine.group), (None, None));
    assert_eq!(files.anomalies(), []);

    // Limits reported by the kernel take precedence over those computed from the settings.
    fake.file("proc/vmstat", "nr_dirty_threshold 1000\nnr_dirty_background_threshold 500");
    let limits = fake.files().machine().limits().unwrap();
    assert_eq!((limits.background_bytes, limits.limit_bytes), (500 * 4096, 1000 * 4096));
}

#[test]
fn disks_are_found_below_partitions_and_volumes() {
    let fake = Fake::new();
    fake.disk("sda", "8:0", SATA).partition("sda", "sda2", "8:2");
    fake.disk("nvme0n1", "259:0", &[("rotational", "0"), ("scheduler", "[none] mq-deadline")]);
    fake.disk("dm-0", "253:0", &[("rotational", "1"), ("read_ahead_kb", "256")]);
    for below in ["sda2", "nvme0n1"] {
        fake.file(&format!("sys/block/dm-0/slaves/{below}"), "");
    }
    fake.file("sys/block/dm-0/bdi/max_ratio", "40").file("sys/block/dm-0/bdi/strict_limit", "1");
    fake.file("proc/fs/ext4/dm-0/options", "rw\nbarrier\ndata=ordered\ncommit=5");
    fake.file("proc/fs/jbd2/dm-0-8/info", "85 transactions (62 requested), each up to 2048 blocks");
    fake.file("sys/fs/ext4/dm-0/journal_task", "411");
    fake.file(
        "proc/self/mountinfo",
        "22 1 0:21 / /proc rw - proc proc rw\n\
         27 1 253:0 / / rw,relatime - ext4 /dev/mapper/root rw,discard\n\
         28 27 253:0 /a /bound rw - ext4 /dev/mapper/root rw\n\
         29 27 0:40 / /big rw - btrfs /dev/sda2 rw\n\
         garbage",
    );
    let files = fake.files();
    let all = files.all_mounted();
    assert_eq!(files.anomalies(), []);
    let points: Vec<_> = all.iter().map(|one| one.mount.as_ref().unwrap().point.as_str()).collect();
    assert_eq!(points, ["/", "/big"], "each device once");

    let root = &all[0];
    assert_eq!((root.file_system.clone(), root.journal), (FileSystem::Ext4, Some(true)));
    assert!(root.has("discard") && root.has("barrier"), "{:?}", root.options);
    assert_eq!((root.value("commit"), root.value("data")), (Some("5"), Some("ordered")));
    assert_eq!(root.journal_info.unwrap().blocks_max, 2048);
    assert_eq!(root.queue.readahead_bytes, Some(256 << 10));
    assert_eq!((root.share.percent_max, root.share.is_strict), (Some(40), Some(true)));
    let names: Vec<_> = root.disks.iter().map(|disk| (disk.name.as_str(), disk.kind)).collect();
    assert_eq!(names, [("nvme0n1", DiskKind::Nvme), ("sda", DiskKind::Scsi)]);
    let sda = &root.disks[1];
    assert_eq!(sda.schedulers, ["none", "mq-deadline", "bfq"]);
    assert_eq!((sda.read_latency_us, sda.is_zoned), (Some(75_000), false));

    let big = &all[1];
    assert_eq!(big.device.as_ref().unwrap().name, "sda2");
    assert_eq!(big.disks[0].name, "sda");
    assert_eq!(big.share.percent_max, None, "a btrfs has its own");
}

#[test]
fn group_and_its_ancestors_limit_dirtyable_memory() {
    const MOUNT: &str = "31 1 0:28 / /cg rw - cgroup2 cgroup2 rw";
    let fake = Fake::new();
    fake.file("proc/self/cgroup", "0::/slice/unit").file("proc/self/mountinfo", MOUNT);
    fake.file("cg/slice/unit/memory.current", "104857600");
    fake.file("cg/slice/unit/memory.high", "max").file("cg/slice/unit/memory.max", "1073741824");
    fake.file("cg/slice/memory.current", "209715200");
    fake.file("cg/slice/memory.high", "536870912").file("cg/slice/memory.max", "max");
    fake.file(
        "cg/slice/unit/memory.stat",
        "anon 5\ninactive_file 31457280\nactive_file 20971520\nfile_dirty 1048576",
    );
    let machine = fake.files().machine();
    let group = machine.group.as_ref().unwrap();
    assert_eq!((group.group.as_str(), group.is_version_1), ("/slice/unit", false));
    assert_eq!(group.limit_bytes, Some(512 << 20));
    assert_eq!(group.room_bytes, Some(312 << 20));
    let own = group.dirtyable_bytes(8 << 30, 0).unwrap();
    assert_eq!(own, (312 + 50) << 20);
    let limits = machine.group_limits().unwrap();
    assert_eq!(limits.limit_bytes, own / 4096 * 819 / 4096 * 4096);
    // The group may also use its page cache that is not dirty: 50 MiB less 1 MiB.
    assert_eq!(machine.available_bytes(), Some((312 + 49) << 20));

    // cgroup v1 has a memory limit, but no limit of dirty memory.
    let fake = Fake::new();
    fake.file("proc/self/cgroup", "4:memory:/job\n0::/");
    fake.file("proc/self/mountinfo", "31 1 0:28 / /cg rw - cgroup cgroup rw,memory");
    fake.file("cg/job/memory.limit_in_bytes", "1073741824");
    fake.file("cg/memory.limit_in_bytes", "9223372036854771712");
    let machine = fake.files().machine();
    let group = machine.group.as_ref().unwrap();
    assert_eq!((group.is_version_1, group.limit_bytes), (true, Some(1 << 30)));
    assert_eq!(machine.group_limits(), None);
    assert_eq!(machine.available_bytes(), Some(1 << 30), "less than the machine has");
    fake.file("cg/job/memory.usage_in_bytes", "1063741824");
    fake.file("cg/memory.usage_in_bytes", "9999999999");
    fake.file(
        "cg/job/memory.stat",
        "active_file 1\ntotal_dirty 3000\ntotal_inactive_file 200000\ntotal_active_file 50000\n",
    );
    let machine = fake.files().machine();
    assert_eq!(machine.available_bytes(), Some(10_000_000 + 250_000 - 3000));
    assert_eq!(machine.group_limits(), None);
}

#[test]
fn missing_or_malformed_files_are_reported() {
    let empty = KernelFiles::below(tempfile::tempdir().unwrap().path());
    assert_eq!(empty.machine().limits(), None);
    assert_eq!(empty.all_mounted(), []);
    let paths: Vec<_> = empty.anomalies().into_iter().map(|anomaly| anomaly.path).collect();
    for path in ["/proc/meminfo", "/proc/sys/vm/dirty_ratio", "/proc/self/mountinfo"] {
        assert!(paths.iter().any(|other| other == path), "{path}: {paths:?}");
    }

    let fake = Fake::new();
    fake.file("proc/sys/vm/dirty_ratio", "many \u{1b}[31m percent and then some words more");
    fake.file("proc/sys/vm/dirty_bytes", "-1")
        .file("proc/zoneinfo", "Node")
        .file("proc/meminfo", "");
    fake.disk("sda", "8:0", &[("rotational", "2"), ("scheduler", "a b"), ("wbt_lat_usec", "x")]);
    fake.file("sys/block/sda/bdi/max_ratio", "all");
    fake.file("proc/fs/jbd2/sda-8/info", "none").file("proc/fs/ext4/sda/options", "\n\n");
    fake.file("proc/self/mountinfo", "27 1 8:0 / / rw - ext4 /dev/sda rw");
    fake.file("proc/self/cgroup", "x").file("proc/vmstat", "nr_dirty_threshold");
    let files = fake.files();
    assert_eq!(files.machine().limits(), None);
    assert_eq!(files.all_mounted().len(), 1);
    let anomalies = files.anomalies();
    let problem = |path: &str| {
        anomalies.iter().find(|anomaly| anomaly.path == path).map(|anomaly| &*anomaly.what)
    };
    for path in [
        "/proc/sys/vm/dirty_bytes",
        "/proc/zoneinfo",
        "/proc/meminfo",
        "/sys/block/sda/queue/rotational",
        "/sys/block/sda/queue/scheduler",
        "/sys/block/sda/queue/wbt_lat_usec",
        "/sys/block/sda/bdi/max_ratio",
        "/proc/fs/jbd2/sda-8/info",
    ] {
        assert!(problem(path).is_some(), "{path}: {anomalies:?}");
    }
    let ratio = problem("/proc/sys/vm/dirty_ratio").unwrap();
    assert!(ratio.contains("many \\u{1b}") && ratio.contains('…'), "{ratio}");
    assert_eq!(anomalies.len(), 9, "{anomalies:?}");
}

#[test]
fn cyclic_devices_terminate() {
    let fake = Fake::new();
    fake.disk("dm-0", "253:0", &[]).file("sys/block/dm-0/slaves/dm-0", "");
    fake.file("proc/self/mountinfo", "27 1 253:0 / / rw - xfs /dev/dm-0 rw");
    let all = fake.files().all_mounted();
    assert_eq!(all[0].disks.len(), 1);
}

#[test]
fn setting_is_changed_and_read_back() {
    let fake = Fake::new();
    fake.disk("sda", "8:0", SATA);
    let (files, scheduler) = (fake.files(), "/sys/block/sda/queue/scheduler");
    assert_eq!(files.setting(scheduler).unwrap(), "mq-deadline");
    files.may_set(scheduler).unwrap();
    assert_eq!(files.setting(scheduler).unwrap(), "mq-deadline", "the check changes nothing");
    files.set(scheduler, "none").unwrap();
    assert_eq!(files.setting(scheduler).unwrap(), "none");

    let error = files.set("/proc/sys/vm/no_such_thing", "1").unwrap_err();
    assert!(error.is_not_found() && !fake.path("proc/sys/vm/no_such_thing").exists(), "{error}");
    assert!(files.may_set("/proc/sys/vm/no_such_thing").is_err());
    fake.file("proc/sys/vm/odd", "two words");
    assert!(files.setting("/proc/sys/vm/odd").is_err());

    // `/dev/null` simulates a kernel that ignores the written value.
    let odd = fake.path("proc/sys/vm/odd");
    fs::remove_file(&odd).unwrap();
    symlink("/dev/null", &odd).unwrap();
    assert!(files.set("/proc/sys/vm/odd", "5").is_err());
}

#[test]
fn computed_limits_match_those_of_this_kernel() {
    let files = KernelFiles::default();
    let machine = files.machine();
    assert_eq!(files.anomalies(), [], "every kernel has these files");
    let reported = machine.kernel_limits.expect("every kernel since 2.6.37 reports them");
    let mut computed = machine;
    computed.kernel_limits = None;
    let computed = computed.limits().unwrap();
    // Other programs allocate and free memory while the files are read one after another, so the
    // limits may differ by a twentieth.
    for (reported, computed) in [
        (reported.background_bytes, computed.background_bytes),
        (reported.limit_bytes, computed.limit_bytes),
    ] {
        assert!(
            reported.abs_diff(computed) <= reported / 20,
            "{reported} reported, {computed} computed"
        );
    }
}

#[test]
fn mount_on_a_loop_device_has_its_journal() {
    let Some(image) = LoopImage::new("ext4", 64 << 20) else { return };
    let files = KernelFiles::default();
    let facts = files.mounted(&probe(image.mount()).unwrap());
    assert_eq!((facts.file_system.clone(), facts.journal), (FileSystem::Ext4, Some(true)));
    assert!(facts.has("noatime") && facts.has("barrier"), "{:?}", facts.options);
    assert_eq!((facts.value("commit"), facts.value("data")), (Some("300"), Some("ordered")));
    assert!(facts.journal_info.unwrap().blocks_max > 0);
    let [disk] = facts.disks.as_slice() else { panic!("{:?}", facts.disks) };
    assert_eq!((disk.name.as_str(), disk.kind), (image.device(), DiskKind::Loop));
    assert!(disk.file.as_ref().is_some_and(|file| file.ends_with("/image")), "{:?}", disk.file);
    let is_here = |one: &haul_disk::MountFacts| one.device == facts.device;
    assert!(files.all_mounted().iter().any(is_here));
}

#[test]
fn real_setting_is_changed_and_read_back() {
    // A device that no other process uses.
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let files = KernelFiles::default();
    let readahead = format!("/sys/block/{}/queue/read_ahead_kb", image.device());
    let before: u64 = files.setting(&readahead).unwrap().parse().unwrap();
    let other = (before + 64).to_string();
    files.may_set(&readahead).unwrap();
    files.set(&readahead, &other).unwrap();
    assert_eq!(fs::read_to_string(&readahead).unwrap().trim(), other);
    let scheduler = format!("/sys/block/{}/queue/scheduler", image.device());
    let error = files.set(&scheduler, "no-such-scheduler").unwrap_err();
    assert!(error.to_string().contains("scheduler"), "{error}");
    // The kernel rounds the value; `set` detects that it reads back another value.
    let error = files.set(&readahead, &(before + 1).to_string()).unwrap_err();
    assert!(error.source.to_string().contains("reads back"), "{error:?}");
    files.set(&readahead, &before.to_string()).unwrap();
}
