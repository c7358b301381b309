//! Tests that equal blocks of files are shared, and only these.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haul_bulk_read::WalkOptions;
use haul_disk::{DelayedAllocation, extents, same_blocks_at};
use haul_duplicates::act::{Action, SkipReason};
use haul_duplicates::blocks::{Events, Options, SharedRange, Stats, share_blocks};
use haul_duplicates::{Error, Phase};
use haul_testing::{LoopImage, Random};
use parking_lot::Mutex;
use rustix::fs::ioctl_ficlone;

use crate::actions::{group, options, process};

const BLOCK: u64 = 16 << 10;
const BLOCK_LEN: usize = 16 << 10;

/// A shared range: source, its offset, target, its offset, and the length.
type Shared = (PathBuf, u64, PathBuf, u64, u64);

/// A receiver of events that records the shared ranges and the errors, and may change a file after
/// all files were read.
#[derive(Default)]
struct Log {
    shared: Mutex<Vec<Shared>>,
    errors: Mutex<Vec<String>>,
    change: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl haul_duplicates::Events for Log {
    fn failed(&self, error: Error) {
        self.errors.lock().push(error.to_string());
    }

    fn phase(&self, phase: Phase, _items: u64, _bytes: u64) {
        if phase == Phase::Sharing
            && let Some(change) = self.change.lock().take()
        {
            change();
        }
    }
}

impl Events for Log {
    fn shared(&self, range: &SharedRange<'_>) {
        let SharedRange { from, from_offset, to, to_offset, bytes } = *range;
        self.shared.lock().push((from.into(), from_offset, to.into(), to_offset, bytes));
    }

    fn range_skipped(&self, range: &SharedRange<'_>, reason: &SkipReason) {
        self.errors.lock().push(format!("{}: {reason}", range.to.display()));
    }
}

fn share(dir: &Path, dry_run: bool, log: &Log) -> Stats {
    let options = Options { block_bytes: BLOCK, dry_run, ..Options::default() };
    share_blocks(&[dir.to_path_buf()], &WalkOptions::default(), &options, log)
}

/// Returns a directory on a file system with reflinks.
fn with_reflinks(test: impl Fn(&Path)) {
    for kind in ["xfs", "btrfs"] {
        let Some(image) = LoopImage::new(kind, 512 << 20) else { continue };
        let dir = image.mount().join("files");
        fs::create_dir(&dir).unwrap();
        test(&dir);
    }
}

fn write(path: &Path, parts: &[&[u8]]) {
    fs::write(path, parts.concat()).unwrap();
    File::open(path).unwrap().sync_all().unwrap();
}

fn shares(a: &Path, a_offset: u64, b: &Path, b_offset: u64, bytes: u64) -> bool {
    let map = |path: &Path, offset| {
        extents(&File::open(path).unwrap().as_fd(), offset, bytes, DelayedAllocation::Sync).unwrap()
    };
    same_blocks_at(&map(a, a_offset), a_offset, &map(b, b_offset), b_offset, bytes)
}

#[test]
fn equal_blocks_of_different_files_are_shared() {
    with_reflinks(|dir| {
        let mut random = Random::from_environment();
        let [x, y, z] = [(); 3].map(|()| random.bytes(4 * BLOCK_LEN));
        let tail = random.bytes(5000);
        let (a, b, c) = (dir.join("a"), dir.join("b"), dir.join("c"));
        write(&a, &[&x, &y, &tail]);
        // The blocks of `y` begin at another multiple of the block size.
        write(&b, &[&z, &x[..BLOCK_LEN], &y, &tail]);
        write(&c, &[&tail[1..], &y]);
        let before: Vec<_> = [&a, &b, &c].map(|path| fs::read(path).unwrap()).into();
        let times: Vec<_> = [&a, &b, &c].map(|path| fs::metadata(path).unwrap().mtime()).into();

        let dry = Log::default();
        let planned = share(dir, true, &dry);
        let expected = vec![
            (a.clone(), 0, b.clone(), 4 * BLOCK, BLOCK),
            (a.clone(), 4 * BLOCK, b.clone(), 5 * BLOCK, 4 * BLOCK + 5000),
        ];
        assert_eq!(*dry.shared.lock(), expected, "{dir:?}");
        assert!(!shares(&a, 0, &b, 4 * BLOCK, BLOCK), "a dry run changes nothing");

        let log = Log::default();
        let stats = share(dir, false, &log);
        assert_eq!((*log.shared.lock()).clone(), expected, "{dir:?}: {:?}", log.errors.lock());
        assert_eq!(stats, planned);
        assert_eq!((stats.files, stats.ranges, stats.skipped), (3, 2, 0));
        assert_eq!(stats.shared_bytes, 5 * BLOCK + 5000);
        assert!(shares(&a, 4 * BLOCK, &b, 5 * BLOCK, 4 * BLOCK + 5000), "{dir:?}");
        let after: Vec<_> = [&a, &b, &c].map(|path| fs::read(path).unwrap()).into();
        assert!(before == after, "{dir:?}: content changed");
        let kept: Vec<_> = [&a, &b, &c].map(|path| fs::metadata(path).unwrap().mtime()).into();
        assert_eq!(times, kept);

        let again = Log::default();
        let stats = share(dir, false, &again);
        assert_eq!((stats.ranges, stats.already_shared_bytes), (0, 5 * BLOCK + 5000), "{dir:?}");
    });
}

#[test]
fn sharing_frees_the_space_of_copies() {
    with_reflinks(|dir| {
        let bytes = Random::from_environment().bytes(32 << 20);
        for name in ["a", "b", "c"] {
            write(&dir.join(name), &[&bytes]);
        }
        let free_bytes = || {
            rustix::fs::syncfs(File::open(dir).unwrap()).unwrap();
            let status = rustix::fs::statvfs(dir).unwrap();
            status.f_bfree * status.f_frsize
        };
        let before = free_bytes();
        let stats = share(dir, false, &Log::default());
        assert_eq!(stats.shared_bytes, 64 << 20);
        haul_testing::eventually("the blocks of two copies are free", || {
            free_bytes() >= before + (60 << 20)
        });
    });
}

#[test]
fn file_that_changes_after_it_was_read_keeps_its_content() {
    with_reflinks(|dir| {
        let bytes = Random::from_environment().bytes(8 * BLOCK_LEN);
        let (a, b, c) = (dir.join("a"), dir.join("b"), dir.join("c"));
        for path in [&a, &b, &c] {
            write(path, &[&bytes]);
        }
        let log = Log::default();
        let (changed, times) = (b.clone(), fs::metadata(&b).unwrap().modified().unwrap());
        *log.change.lock() = Some(Box::new(move || {
            // The mtime is restored, so only the comparison by the kernel detects the change.
            let file = File::options().write(true).open(&changed).unwrap();
            file.write_all_at(&[!bytes[20_000]], 20_000).unwrap();
            file.set_modified(times).unwrap();
        }));
        let before_c = fs::read(&c).unwrap();
        let stats = share(dir, false, &log);
        assert_eq!((stats.ranges, stats.skipped), (1, 1), "{dir:?}");
        assert!(log.errors.lock()[0].contains("content differs"), "{:?}", log.errors.lock());
        assert_eq!(fs::read(&b).unwrap()[20_000], !before_c[20_000], "{dir:?}: change lost");
        assert_eq!(fs::read(&c).unwrap(), before_c);
    });
}

#[test]
fn holes_and_reflinks_are_not_shared_again() {
    with_reflinks(|dir| {
        let bytes = Random::from_environment().bytes(2 << 20);
        let original = dir.join("original");
        write(&original, &[&bytes]);
        let copy = File::create(dir.join("reflink")).unwrap();
        ioctl_ficlone(&copy, File::open(&original).unwrap()).unwrap();
        for name in ["sparse 1", "sparse 2"] {
            File::create(dir.join(name)).unwrap().set_len(1 << 40).unwrap();
        }
        fs::hard_link(&original, dir.join("hard link")).unwrap();
        let stats = share(dir, false, &Log::default());
        assert_eq!((stats.ranges, stats.already_shared_bytes), (0, 2 << 20), "{dir:?}");
    });
}

#[test]
fn file_system_without_reflinks_is_reported_once() {
    let Some(image) = LoopImage::new("ext4", 64 << 20) else { return };
    let bytes = Random::from_environment().bytes(BLOCK_LEN);
    for name in ["a", "b", "c"] {
        write(&image.mount().join(name), &[&bytes]);
    }
    let log = Log::default();
    let stats = share(image.mount(), false, &log);
    assert_eq!((stats.ranges, stats.skipped), (0, 2));
    assert_eq!(log.errors.lock().len(), 1, "{:?}", log.errors.lock());
}

#[test]
fn interfaces_to_the_kernel_are_not_read() {
    let log = Log::default();
    let stats = share(Path::new("/sys/kernel/mm"), true, &log);
    assert_eq!((stats.files, stats.ranges, stats.skipped), (0, 0, 0));
    assert_eq!(log.errors.into_inner(), [""; 0]);
}

#[test]
fn subvolumes_of_one_file_system_share_blocks() {
    let Some(image) = LoopImage::new("btrfs", 512 << 20) else { return };
    let subvolumes = ["one", "two"].map(|name| image.mount().join(name));
    for path in &subvolumes {
        let mut create = Command::new("btrfs");
        create.args(["subvolume", "create"]).arg(path).stdout(Stdio::null());
        assert!(create.status().unwrap().success());
    }
    let bytes = Random::from_environment().bytes(3 * BLOCK_LEN);
    let [one, two] = subvolumes.each_ref().map(|path| path.join("file"));
    fs::write(&one, &bytes).unwrap();
    fs::write(&two, &bytes).unwrap();
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    assert_ne!(device(&one), device(&two));
    let log = Log::default();
    let stats = share(image.mount(), false, &log);
    assert_eq!(log.errors.into_inner(), [""; 0]);
    assert_eq!(stats.shared_bytes, 3 * BLOCK);

    fs::write(&two, &bytes).unwrap();
    let done = process(options(Action::Dedupe), &group(&[one, two.clone()]));
    assert_eq!(done.done, [two], "{:?}", done.skipped);
}
