//! Walks paths, optionally reads all files below them, and prints time and memory. Run it under
//! `strace -f -c` to count system calls.
//!
//! `cargo run --release -p haul-bulk-read --example scan -- read PATH...`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "command-line program")]

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use haul_bulk_read::{
    CacheMode, Consumer, DeviceKind, Error, FileStatus, ReadOptions, ReadRequest, ReadSummary,
    WalkEvents, WalkOptions, read, walk,
};

/// A consumer that discards all bytes.
struct Discard;

impl WalkEvents for Discard {
    fn failed(&self, error: Error) {
        eprintln!("{error}");
    }
}

impl Consumer for Discard {
    type State = ();
    fn begin(&self, _request: usize, _file: &FileStatus) {}
    fn piece(&self, (): &mut (), _request: usize, _bytes: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn end(&self, _state: Option<()>, _request: usize, outcome: Result<ReadSummary, Error>) {
        if let Err(error) = outcome {
            eprintln!("{error}");
        }
    }
}

/// Returns the peak resident set size of the process.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.unwrap_or("unknown").split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let (flags, paths): (Vec<_>, Vec<_>) = arguments.partition(|word| word.starts_with("--"));
    let has = |flag: &str| flags.iter().any(|argument| argument == flag);
    let paths: Vec<_> = paths.into_iter().map(PathBuf::from).collect();
    let started = Instant::now();
    let walk_options = WalkOptions { hidden: true, sort: has("--sort"), ..WalkOptions::default() };
    let tree = walk(&paths, &walk_options, &Discard);
    println!("{} files in {:?}, peak {}", tree.len(), started.elapsed(), peak());
    println!("{} bytes of memory for the tree", tree.memory_bytes());
    if command != "read" {
        return;
    }
    let options = ReadOptions {
        ring: !has("--no-ring"),
        cache: if has("--spare") { CacheMode::Preserve } else { CacheMode::Normal },
        kind: match (has("--solid"), has("--rotating")) {
            (true, _) => Some(DeviceKind::SolidState),
            (_, true) => Some(DeviceKind::Rotational),
            _ => None,
        },
        ..ReadOptions::default()
    };
    let started = Instant::now();
    let requests: Vec<_> = tree.ids().map(ReadRequest::whole).collect();
    let stats = read(&tree, &requests, &options, &Discard);
    println!("{} bytes in {:?}, peak {}", stats.bytes, started.elapsed(), peak());
    for device in stats.devices {
        println!("{device:?}");
    }
}
