//! The log of lines against the real kernel, against faults, full disks and power cuts.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which may fail like them"
)]

mod crash;
mod faults;
mod full;
mod kill;
mod policies;
mod restart;
mod retention;
mod rotation;
mod threads;
mod writers;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use haul_disk::{Disk, File, Open, read_full};
use haul_line_log::{CURRENT, Clock, Error, Event, Keep, LineLog, Options, Outside};
use tempfile::TempDir;

/// Short buffers and files, so that a test sees many, and nothing is removed.
fn small() -> Options {
    Options {
        buffer_bytes: 4 << 10,
        buffers: 2,
        file_bytes_max: Some(4 << 10),
        keep: Keep { files_max: None, ..Keep::default() },
        retry_pause: Duration::from_hours(1),
        ..Options::default()
    }
}

/// A directory on a disk: the usual temporary directory may well be in memory.
fn disk_dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn open(dir: &Path, options: Options) -> LineLog {
    // A child that another test has forked holds every lock of this process, until it is another
    // program a moment later.
    for _ in 0..100_000 {
        match LineLog::open(dir, options.clone(), Outside::default()) {
            Err(Error::InUse { .. }) => thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
    panic!("nobody lets go of the lock")
}

fn open_on(disk: &(impl Disk + Clone + 'static), options: Options) -> LineLog {
    LineLog::open_on(Arc::new(disk.clone()), options, Outside::default()).unwrap()
}

/// A clock that stands where the test puts it, and files that were written then.
#[derive(Debug, Default)]
struct TestClock {
    now_us: AtomicU64,
    modified_us: AtomicU64,
}

impl TestClock {
    fn set_seconds(&self, seconds: u64) {
        self.now_us.store(seconds * 1_000_000, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now_us(&self) -> u64 {
        self.now_us.load(Ordering::SeqCst)
    }

    fn modified_us(&self, _: &dyn File) -> Option<u64> {
        Some(self.modified_us.load(Ordering::SeqCst))
    }
}

/// What the background thread told.
#[derive(Debug, Clone, Default)]
struct Told(Arc<Mutex<Vec<Event>>>);

impl Told {
    fn outside(&self) -> Outside {
        let told = Arc::clone(&self.0);
        let watch = move |event: &Event| told.lock().unwrap().push(event.clone());
        Outside { watch: Box::new(watch), ..Outside::default() }
    }

    fn count(&self, is_it: impl Fn(&Event) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|event| is_it(event)).count()
    }
}

/// The names of the closed files, oldest first.
fn closed(disk: &dyn Disk) -> Vec<String> {
    let is_closed = |name: &String| name.ends_with("Z.log") || name.ends_with("Z.unsynced");
    disk.list("").unwrap().into_iter().filter(is_closed).collect()
}

fn text(disk: &dyn Disk, name: &str) -> Vec<u8> {
    let file = disk.open(name, Open { read_only: true, ..Open::default() }).unwrap();
    let mut bytes = vec![0; usize::try_from(file.bytes().unwrap()).unwrap()];
    let read = read_full(&*file, &mut bytes, 0).unwrap();
    assert_eq!(read, bytes.len());
    bytes
}

/// Each file, oldest first, the current one last.
fn files(disk: &dyn Disk) -> Vec<Vec<u8>> {
    let mut names = closed(disk);
    if disk.list("").unwrap().iter().any(|name| name == CURRENT) {
        names.push(CURRENT.to_owned());
    }
    names.iter().map(|name| text(disk, name)).collect()
}

fn all(disk: &dyn Disk) -> Vec<u8> {
    files(disk).concat()
}

/// A line that says its number, `bytes` long with its newline.
fn line(number: u64, bytes: usize) -> Vec<u8> {
    let mut line = format!("{number:08} ").into_bytes();
    line.resize(bytes.max(10) - 1, b'.');
    line.push(b'\n');
    line
}

/// The numbers of the whole lines; what is no whole line is none.
fn numbers(text: &[u8]) -> Vec<u64> {
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    lines.filter_map(|line| str::from_utf8(line.get(..8)?).ok()?.parse().ok()).collect()
}

/// Runs `body` in a thread of its own and fails where it does not come back.
fn within_a_minute<T: Send + 'static>(what: &str, body: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    let worker = thread::spawn(move || done.send(body()));
    match wait.recv_timeout(Duration::from_mins(1)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what} hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match worker.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => unreachable!("it sends before it ends"),
        },
    }
}
