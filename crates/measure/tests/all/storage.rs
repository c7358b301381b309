//! Checks that `measure` returns all figures and leaves no file behind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haul_measure::{Error, Measured, Method, Options, Silent, Watcher, measure};

use crate::disk_dir;

fn short(dir: &tempfile::TempDir) -> Options {
    Options {
        bytes: 16 << 20,
        rounds: 2,
        time: Duration::from_millis(2),
        depths: vec![1, 4],
        ..Options::new(dir.path())
    }
}

#[test]
fn all_methods_and_depths_are_measured_and_nothing_left() {
    let dir = disk_dir();
    let Measured { writes, reads, read_bytes_per_s, write_bytes_per_s, depth, notes, .. } =
        measure(&short(&dir), &Silent).unwrap();
    assert_eq!(writes.iter().map(|row| row.method).collect::<Vec<_>>(), Method::ALL);
    let is_direct = !notes.iter().any(|note| note.contains("no direct I/O"));
    for row in &writes {
        let is_measured = is_direct || !row.method.is_direct();
        assert_eq!(row.why_not.is_none(), is_measured, "{row:?}");
        assert_eq!(row.sample.per_second().is_some(), is_measured, "{row:?}");
        assert!(!is_measured || row.sample.latencies.count() >= 2, "two rounds: {row:?}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "left behind");
    if !is_direct {
        return haul_testing::skip("the test disk has no direct I/O");
    }
    assert_eq!(reads.iter().map(|row| row.depth).collect::<Vec<_>>(), [1, 4]);
    assert!(reads.iter().all(|row| row.sample.latencies.count() >= 2 * row.depth as u64));
    assert!(depth.is_some_and(|depth| [1, 4].contains(&depth)));
    assert!(read_bytes_per_s.is_some_and(|rate| rate > 0.0));
    assert!(write_bytes_per_s.is_some_and(|rate| rate > 0.0));
}

/// Cancels the measurement when it checks for cancellation for the n-th time; holds n.
struct StopAt(AtomicUsize);

impl Watcher for StopAt {
    fn is_cancelled(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

#[test]
fn cancellation_at_any_point_leaves_nothing() {
    let dir = disk_dir();
    for questions in [1, 2, 10, 20, 40] {
        let ended = measure(&short(&dir), &StopAt(AtomicUsize::new(questions)));
        assert!(matches!(ended, Err(Error::Cancelled)), "{questions}: {ended:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{questions}: left behind");
    }
}

#[test]
fn missing_directory_is_an_error() {
    measure(&Options::new("/nowhere/at/all"), &Silent).unwrap_err();
}
