//! Defines the options of `haul bench serve`, and the note of the report that explains the rows.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::named::named;
use crate::options::{count, rounds, size};

/// The length in bytes of the objects that are stored.
pub(super) const PUT_BYTES: usize = 4 << 10;
/// The maximum number of bytes requested in one measurement, unless one response for each
/// connection has more.
const REQUESTED_BYTES_MAX: u64 = 1 << 30;

/// Options of `haul bench serve`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the files and the stores; some GiB must be free
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Parts to measure: get, put
    ///
    /// get: CPU time of the server per GET of objects in memory, anonymous and signed, beside haul
    /// files and nginx. put: CPU time of the server per PUT of 4 KiB, of new keys and of keys that
    /// exist, beside Store::put with as many threads in one process.
    #[arg(long = "only", value_name = "LIST", value_delimiter = ',', default_value = "get,put")]
    pub parts: Vec<Part>,
    /// Sizes of the objects, 1 B to 1GiB; each size is measured separately
    #[arg(long = "sizes", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "4KiB,64KiB,1MiB,64MiB", value_parser = object_size)]
    pub object_bytes: Vec<u64>,
    /// Number of connections, and of threads that call Store::put
    #[arg(long, value_name = "N", default_value = "16", value_parser = count(1..=1000))]
    pub connections: usize,
    /// Maximum number of GET requests in one measurement
    ///
    /// Large objects are requested less often: for 1 GiB in all, and once on each connection at
    /// least.
    #[arg(long, value_name = "N", default_value = "50000", value_parser = count(1..=100_000_000))]
    pub requests: usize,
    /// Number of PUT requests in one measurement
    #[arg(long, value_name = "N", default_value = "5000", value_parser = count(1..=1_000_000))]
    pub puts: usize,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// TCP congestion control during the benchmark, such as cubic; needs root
    ///
    /// This is a setting of the machine: it applies to all connections that any program opens
    /// during the benchmark. The previous setting is restored however the benchmark ends.
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Path of the program haul to measure [default: beside haul-bench or in PATH]
    #[arg(long, value_name = "PROGRAM")]
    pub program: Option<PathBuf>,
    /// The directories to search for nginx, in the format of `PATH`.
    #[arg(skip)]
    pub path: OsString,
}

named! {
    /// A part of the benchmark.
    pub enum Part {
        /// GET requests for objects in memory.
        Get = "get",
        /// PUT requests of small objects.
        Put = "put",
    }
}

fn object_size(text: &str) -> Result<u64, String> {
    size(text, 1..=1 << 30, "a size from 1 B to 1GiB")
}

impl Options {
    /// Returns the number of GET requests in one measurement of objects of this length.
    pub(super) fn gets(&self, object_bytes: u64) -> usize {
        let most = usize::try_from(REQUESTED_BYTES_MAX / object_bytes).unwrap_or(usize::MAX);
        self.requests.min(most).max(self.connections)
    }

    /// Returns a note that explains the rows.
    pub(super) fn note(&self) -> String {
        let Self { rounds, connections, requests, puts, .. } = self;
        format!(
            "{rounds} interleaved rounds; numbers are medians, ratios are medians of the ratios of \
             pairs of one round. One core for the server, one for the load, on loopback; \
             {connections} persistent connections. CPU is the time for which the threads of the \
             server ran, per request. GET: objects in memory, up to {requests} requests or 1 GiB \
             in a measurement. PUT: {puts} objects of 4 KiB, durable when the response arrives; a \
             signature covers the checksum of the body. Store::put: as many threads as \
             connections store the same objects in one process, on the server's core. serve runs \
             without scrub and lifecycle checks. \"again\" is the first server once more."
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn number_of_gets_is_limited_by_bytes_and_connections() {
        let options = Options::parse_from(["serve", "--dir", "d", "--requests", "20000"]);
        let gets = [1, 4 << 10, 64 << 10, 1 << 20, 64 << 20, 1 << 30].map(|one| options.gets(one));
        assert_eq!(gets, [20_000, 20_000, 16_384, 1024, 16, 16]);
    }
}
