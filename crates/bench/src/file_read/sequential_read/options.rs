//! Defines the options of the benchmark, and the strategies that they select. Performs no I/O.

use std::path::PathBuf;

use super::strategy::{Advice, Method, Readahead, Strategy};
use crate::options::{file_size, pages, rounds};

/// The benchmark `sequential-read`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct SequentialReadBench {
    /// Directory for the test file
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Length of the test file
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = file_size)]
    pub file_size: u64,
    /// Lengths of a read, multiples of 4KiB, at most 64MiB
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "64KiB,1MiB")]
    #[arg(value_parser = pages)]
    pub sizes: Vec<u64>,
    /// Lengths of the part ahead of the reader to prefetch with madvise or fadvise
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1MiB,8MiB")]
    #[arg(value_parser = pages)]
    pub windows: Vec<u64>,
    /// Readahead advice (posix_fadvise) for the file: normal, sequential, random
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "normal,sequential,random")]
    pub advice: Vec<Advice>,
    /// Readahead of the device, in KiB, instead of --advice; such as 0,128,4096
    ///
    /// Needs root. The setting affects all programs that use the device during the benchmark. It
    /// is restored at the end, also after Ctrl-C and when the program is killed.
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "advice")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=1_048_576))]
    pub read_ahead_kb: Vec<u64>,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
}

impl SequentialReadBench {
    fn readaheads(&self) -> Vec<Readahead> {
        match self.read_ahead_kb.is_empty() {
            true => self.advice.iter().copied().map(Readahead::Advice).collect(),
            false => self.read_ahead_kb.iter().copied().map(Readahead::Kib).collect(),
        }
    }

    /// Returns all methods for each readahead. Direct reads have no readahead, so they are returned
    /// only with the first readahead.
    pub(super) fn strategies(&self) -> Vec<Strategy> {
        let file_bytes = self.file_size;
        let windows: Vec<_> = self.windows.iter().copied().map(Some).collect();
        let mut strategies = Vec::new();
        for (number, readahead) in self.readaheads().into_iter().enumerate() {
            for method in Method::ALL.into_iter().filter(|it| number == 0 || *it != Method::Direct)
            {
                let prefetches = matches!(method, Method::MmapAdvised | Method::ReadAhead);
                let windows = if prefetches { &windows[..] } else { &[None] };
                for request_bytes in self.sizes.iter().copied() {
                    strategies.extend(windows.iter().copied().map(|window_bytes| Strategy {
                        readahead,
                        method,
                        request_bytes,
                        window_bytes,
                        file_bytes,
                    }));
                }
            }
        }
        strategies
    }
}
