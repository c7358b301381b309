//! Counts the files and bytes that several threads have transferred so far.

use std::sync::atomic::{AtomicU64, Ordering};

/// A function that receives the numbers of files and bytes transferred so far.
pub(crate) type Report<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// A counter of files and bytes that reports each change.
pub(crate) struct Counter<'a> {
    files: AtomicU64,
    bytes: AtomicU64,
    report: Report<'a>,
}

impl<'a> Counter<'a> {
    pub(crate) fn new(report: Report<'a>) -> Self {
        Self { files: AtomicU64::new(0), bytes: AtomicU64::new(0), report }
    }

    /// Counts one more file of `bytes` bytes.
    pub(crate) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.files.fetch_add(1, Ordering::Relaxed);
        self.report();
    }

    /// Begins a file whose bytes are counted while they are processed.
    pub(crate) fn part(&self) -> Part<'_> {
        Part { counter: self, bytes: 0 }
    }

    /// Returns the numbers of files and bytes transferred so far.
    pub(crate) fn done(&self) -> (u64, u64) {
        (self.files.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    fn report(&self) {
        let (files, bytes) = self.done();
        (self.report)(files, bytes);
    }
}

/// A file in progress. Dropping it unfinished subtracts its bytes from the count.
pub(crate) struct Part<'a> {
    counter: &'a Counter<'a>,
    bytes: u64,
}

impl Part<'_> {
    /// Counts `bytes` more bytes of the file.
    pub(crate) fn more(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.counter.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.counter.report();
    }

    /// Counts the file as done.
    pub(crate) fn finish(mut self) {
        self.bytes = 0;
        self.counter.add(0);
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.counter.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_parts_are_not_counted() {
        let reported = AtomicU64::new(0);
        let report = |_files, bytes| reported.store(bytes, Ordering::Relaxed);
        let counter = Counter::new(&report);
        let (mut good, mut bad) = (counter.part(), counter.part());
        good.more(5);
        bad.more(10);
        good.more(5);
        assert_eq!(reported.load(Ordering::Relaxed), 20);
        good.finish();
        drop(bad);
        assert_eq!(counter.done(), (1, 10));
    }
}
