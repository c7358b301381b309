//! Tests that the digest cache saves reads and never returns an outdated digest.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{DeviceKind, ReadOptions};
use haul_duplicates::Options;
use tempfile::TempDir;

use crate::oracle::{Count, files, groups, plant};
use crate::{RecordedEvents, disk_dir, paths, run_search};
use haul_duplicates::Replication;
use haul_testing::{LoopImage, Random, skip};

/// Waits until a change would get a later timestamp than the last change of every file.
fn wait_for_clock(dir: &Path) {
    let changed = |path| {
        let meta = fs::metadata(path).unwrap();
        Duration::new(meta.ctime().unsigned_abs(), u32::try_from(meta.ctime_nsec()).unwrap())
    };
    let last = files(dir).into_iter().map(changed).max().unwrap_or_default();
    let until = SystemTime::UNIX_EPOCH + last + Duration::from_millis(150);
    while SystemTime::now() < until {
        thread::yield_now();
    }
}

/// Waits for the clock and syncs the files, so that their digests can be cached.
fn settle(dir: &Path) {
    wait_for_clock(dir);
    files(dir).iter().for_each(|path| File::open(path).unwrap().sync_all().unwrap());
}

struct Fixture {
    dir: TempDir,
    caches: TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { dir: disk_dir(), caches: disk_dir() }
    }

    fn options(&self) -> Options<'static> {
        Options { cache: Some(self.caches.path().join("new/digests")), ..Options::default() }
    }

    /// Searches, checks the groups, and returns them, the bytes read and the errors.
    fn search(&self, options: &Options<'_>) -> (crate::Groups, u64, Vec<String>) {
        let events = RecordedEvents::default();
        let groups = paths(&run_search(&[self.dir.path()], options, &events));
        assert_eq!(groups, self.expected());
        (groups, events.bytes(), events.failed())
    }

    fn expected(&self) -> crate::Groups {
        groups(&[self.dir.path()], Replication::Over(1), Count::Files)
    }
}

#[test]
fn cached_search_finds_the_same_groups() {
    let mut random = Random::from_environment();
    for kind in [DeviceKind::SolidState, DeviceKind::Rotational] {
        for hash in [HashKind::Xxh3, HashKind::Blake3] {
            let fixture = Fixture::new();
            plant(fixture.dir.path(), &mut random, 40);
            settle(fixture.dir.path());
            let read = ReadOptions { kind: Some(kind), ..ReadOptions::default() };
            let options = Options { hash, read, ..fixture.options() };
            let (_, read, failed) = fixture.search(&options);
            assert!(read > 0 && failed.is_empty(), "{failed:?}");
            // Files of equal samples that were then found to differ were not read to the end, so
            // the cache has no digest of their whole content: they are read again.
            assert!(fixture.search(&options).1 <= read);
            let plain = Options { cache: None, ..options.clone() };
            let groups =
                |options| run_search(&[fixture.dir.path()], options, &RecordedEvents::default());
            assert_eq!(groups(&options), groups(&plain), "with the same digests");
        }
    }
}

#[test]
fn cached_duplicates_are_not_read_again() {
    let fixture = Fixture::new();
    for (number, bytes) in (0..).zip([1, 5000, 70_000, 3 << 20]) {
        for copy in 0..3 {
            let path = fixture.dir.path().join(format!("{number}-{copy}"));
            fs::write(path, vec![number; bytes]).unwrap();
        }
    }
    settle(fixture.dir.path());
    assert!(fixture.search(&fixture.options()).1 > 9 << 20);
    assert_eq!(fixture.search(&fixture.options()).1, 0);
    // Add a new duplicate of cached files: only the new file has to be read.
    fs::copy(fixture.dir.path().join("3-0"), fixture.dir.path().join("new")).unwrap();
    let bytes = fixture.search(&fixture.options()).1;
    assert!((3 << 20..4 << 20).contains(&bytes), "{bytes}");
}

#[test]
fn change_is_detected_with_a_restored_mtime() {
    let fixture = Fixture::new();
    for name in ["a", "b"] {
        fs::write(fixture.dir.path().join(name), vec![1; 100_000]).unwrap();
    }
    settle(fixture.dir.path());
    assert_eq!(fixture.search(&fixture.options()).0.len(), 1);
    let file = File::options().write(true).open(fixture.dir.path().join("b")).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(&[2], 50_000).unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(fixture.search(&fixture.options()).0.len(), 0);
}

/// Maps a file for writing. For each line of stdin, a byte to store at offset 50,000, it prints a
/// line when the byte is stored.
const MAPPER: &str = "
import mmap, sys
file = open(sys.argv[1], 'r+b')
pages = mmap.mmap(file.fileno(), 0)
file.close()
for line in sys.stdin:
    pages[50000] = int(line)
    print('stored', flush=True)
";

/// A process that has a file mapped for writing.
struct Mapper {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Mapper {
    /// Maps the file at `path`; returns `None` if python3 is not installed.
    fn start(path: &Path) -> Option<Self> {
        let mut command = Command::new("python3");
        command.args(["-c", MAPPER]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut child) = command.spawn() else {
            skip("python3 is not installed");
            return None;
        };
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Some(Self { child, lines })
    }

    fn store(&mut self, byte: u8) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{byte}").unwrap();
        assert_eq!(self.lines.next().unwrap().unwrap(), "stored");
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

#[test]
fn stores_through_a_writable_page_are_detected() {
    let fixture = Fixture::new();
    for name in ["a", "b"] {
        fs::write(fixture.dir.path().join(name), vec![1; 100_000]).unwrap();
    }
    let Some(mut mapper) = Mapper::start(&fixture.dir.path().join("b")) else { return };
    // The first store makes the page writable; the stores after it change no timestamp.
    mapper.store(1);
    wait_for_clock(fixture.dir.path());
    assert_eq!(fixture.search(&fixture.options()).0.len(), 1);
    mapper.store(2);
    assert_eq!(fixture.search(&fixture.options()).0.len(), 0);
    mapper.store(1);
    assert_eq!(fixture.search(&fixture.options()).0.len(), 1);
}

#[test]
fn file_mapped_for_writing_is_not_cached() {
    let fixture = Fixture::new();
    for name in ["a", "b"] {
        fs::write(fixture.dir.path().join(name), vec![1; 100_000]).unwrap();
    }
    let Some(mut mapper) = Mapper::start(&fixture.dir.path().join("b")) else { return };
    mapper.store(1);
    settle(fixture.dir.path());
    let first = fixture.search(&fixture.options()).1;
    let second = fixture.search(&fixture.options()).1;
    assert!(0 < second && second < first, "only the mapped file is read again: {second}");
    drop(mapper);
    assert_eq!(fixture.search(&fixture.options()).1, second);
    assert_eq!(fixture.search(&fixture.options()).1, 0);
}

#[test]
fn dirty_files_are_not_cached() {
    // A separate file system, which no other test syncs.
    let Some(image) = LoopImage::new("ext4", 64 << 20) else { return };
    let caches = disk_dir();
    for name in ["a", "b"] {
        fs::write(image.mount().join(name), vec![1; 100_000]).unwrap();
    }
    wait_for_clock(image.mount());
    let options = Options { cache: Some(caches.path().join("digests")), ..Options::default() };
    let groups = || run_search(&[image.mount()], &options, &RecordedEvents::default()).len();
    assert_eq!((groups(), caches.path().join("digests").exists()), (1, false));
    settle(image.mount());
    assert_eq!((groups(), caches.path().join("digests").exists()), (1, true));
}

#[test]
fn recently_changed_files_are_not_cached() {
    let fixture = Fixture::new();
    for name in ["a", "b"] {
        fs::write(fixture.dir.path().join(name), "x").unwrap();
    }
    // Timestamps in the future simulate a file clock that has not advanced.
    for name in ["a", "b"] {
        let file = File::options().write(true).open(fixture.dir.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    }
    fixture.search(&fixture.options());
    assert!(!fixture.options().cache.unwrap().exists());
}

#[test]
fn corrupt_cache_is_reported_and_rebuilt() {
    let fixture = Fixture::new();
    for name in ["a", "b"] {
        fs::write(fixture.dir.path().join(name), vec![1; 100_000]).unwrap();
    }
    settle(fixture.dir.path());
    fixture.search(&fixture.options());
    let cache = fixture.options().cache.unwrap();
    let intact = fs::read(&cache).unwrap();
    let mut flipped = intact.clone();
    flipped[50] ^= 1;
    for corrupt in
        [&flipped[..], &intact[..intact.len() / 2], b"", b"something else entirely, and long"]
    {
        fs::write(&cache, corrupt).unwrap();
        let (_, bytes, failed) = fixture.search(&fixture.options());
        assert!(bytes > 0 && failed.len() == 1 && failed[0].contains("rebuilt"), "{failed:?}");
        assert_eq!(fs::read(&cache).unwrap(), intact);
        assert_eq!(fixture.search(&fixture.options()).1, 0);
    }
}
