//! Counts the lines of all files below a directory, which are read in the order of the device.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::error::Error as StdError;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use haul_bulk_read::{
    Consumer, Error, FileStatus, ReadOptions, ReadRequest, ReadSummary, WalkEvents, WalkOptions,
    read, walk,
};

#[derive(Default)]
struct Lines(AtomicUsize);

impl Consumer for Lines {
    type State = ();
    fn begin(&self, _request: usize, _file: &FileStatus) {}
    fn piece(&self, _: &mut (), _request: usize, bytes: &[u8]) -> ControlFlow<()> {
        self.0.fetch_add(bytes.iter().filter(|byte| **byte == b'\n').count(), Ordering::Relaxed);
        ControlFlow::Continue(())
    }
    fn end(&self, _: Option<()>, _request: usize, outcome: Result<ReadSummary, Error>) {
        outcome.err().into_iter().for_each(|error| self.failed(error));
    }
}
impl WalkEvents for Lines {
    fn failed(&self, error: Error) {
        eprintln!("{error}");
    }
}

fn main() -> Result<(), Box<dyn StdError>> {
    let root = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    let lines = Lines::default();
    let tree = walk(&[root.into()], &WalkOptions::default(), &lines);
    let requests: Vec<_> = tree.ids().map(ReadRequest::whole).collect();
    let stats = read(&tree, &requests, &ReadOptions::default(), &lines);
    println!("{} lines in {} files", lines.0.into_inner(), stats.requests);
    Ok(())
}
