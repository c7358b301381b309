//! Defines the options of `haul bench files`, and the note of the report that explains the rows.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use haul_units::parse_time;

use crate::named::named;
use crate::options::{count, rounds, size};

/// Options of `haul bench files`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the files; some GiB must be free
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Parts to measure: hot, warm, cold, latency, matrix, tls
    ///
    /// hot: requests per second of CPU time for small files in memory. warm, cold: CPU time per GB
    /// for big files that are in memory (warm) or not (cold), and the part of them that is in the
    /// page cache afterwards; also with http.ServeFile of Go, if Go is installed. latency: latency of hot files at a fixed rate during downloads of
    /// cold files, with the memory of --memory; needs root and the memory cgroup. matrix, which is
    /// not a default: files of 1 KiB to 8 MiB in memory on 1, 64 and 1,000 connections, with
    /// keep-alive and with a new connection for each request, also with a small server with hyper,
    /// and with lighttpd, h2o and Caddy if they are installed. tls, which is no default either:
    /// files of 4 KiB and 1 MiB in memory over TLS 1.3, also with Caddy.
    #[arg(long = "only", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "hot,warm,cold,latency")]
    pub parts: Vec<Part>,
    /// Sizes of hot files, 1 B to 16MiB; each size is measured separately
    #[arg(long = "sizes", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "1KiB,4KiB,16KiB", value_parser = hot_size)]
    pub hot_bytes: Vec<u64>,
    /// Number of hot files of each size
    #[arg(long = "files", value_name = "N", default_value = "1000")]
    #[arg(value_parser = count(1..=20_000))]
    pub hot_files: usize,
    /// Size of each big file, 1MiB to 1TiB
    #[arg(long = "big", value_name = "SIZE", default_value = "256MiB", value_parser = big_size)]
    pub big_bytes: u64,
    /// Number of big files; the parts warm and cold use four of them
    #[arg(long, value_name = "N", default_value = "16", value_parser = count(1..=10_000))]
    pub big_files: usize,
    /// Memory of a server during the part latency, including the page cache
    #[arg(long = "memory", value_name = "SIZE", default_value = "256MiB")]
    #[arg(value_parser = memory_size)]
    pub memory_bytes: u64,
    /// Number of connections that request hot files
    #[arg(long, value_name = "N", default_value = "64", value_parser = count(1..=1000))]
    pub connections: usize,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement, such as 500ms
    #[arg(long = "seconds", value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub time: Duration,
    /// TCP congestion control during the benchmark, such as cubic; needs root
    ///
    /// This is a setting of the machine: it applies to all connections that any program opens
    /// during the benchmark. The previous setting is restored however the benchmark ends.
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Path of the program haul to measure [default: beside haul-bench or in PATH]
    #[arg(long, value_name = "PROGRAM")]
    pub program: Option<PathBuf>,
    /// Be the server with hyper at this address, with the files in DIR
    #[arg(long, value_name = "ADDRESS", hide = true)]
    pub hyper: Option<SocketAddr>,
    /// The path of this program, which the benchmark starts as the server with hyper.
    #[arg(skip)]
    pub bench_program: PathBuf,
    /// The directories to search for nginx, in the format of `PATH`.
    #[arg(skip)]
    pub path: OsString,
}

named! {
    /// A part of the benchmark.
    pub enum Part {
        /// Small files in memory, requested as fast as possible.
        Hot = "hot",
        /// Downloads of big files in memory.
        Warm = "warm",
        /// Downloads of big files that are not in memory.
        Cold = "cold",
        /// The latency of hot files, alone and during downloads of cold ones.
        Latency = "latency",
        /// Files of many sizes, on few and many connections.
        Matrix = "matrix",
        /// Files in memory over TLS.
        Tls = "tls",
    }
}

fn hot_size(text: &str) -> Result<u64, String> {
    size(text, 1..=16 << 20, "a size from 1 B to 16MiB")
}

fn big_size(text: &str) -> Result<u64, String> {
    size(text, 1 << 20..=1 << 40, "a size from 1MiB to 1TiB")
}

fn memory_size(text: &str) -> Result<u64, String> {
    size(text, 32 << 20..=1 << 44, "a size of at least 32MiB, which a server needs")
}

impl Options {
    /// Returns a note that explains the rows.
    pub(super) fn note(&self) -> String {
        let Self { rounds, time, connections, hot_files, big_bytes, big_files, .. } = self;
        format!(
            "{rounds} interleaved rounds; numbers are medians, ratios are medians of the ratios of \
             pairs of one round. One core for the server, one for the load, on loopback. hot: \
             {hot_files} files of each size, {connections} connections, {} ms; requests are per \
             second in which the server's core is busy. warm, cold: 4 files of {} MiB on 2 \
             connections, in memory, or not and from a restarted server; CPU time is that of the \
             server's processes, core time that of everything on its core, per 10^9 bytes. \
             \"cached\" is the part of the files in the page cache afterwards. latency: random \
             files of 16 KiB, in all a quarter of the server's memory of {} MiB, requested at 30 % \
             of the rate of the slowest server; latency counts from when a request was due. \
             matrix: size x connections, as for hot files, but with at most 64 MiB of files of a \
             size; \"close\" is a new connection for each request. tls: as the matrix, TLS 1.3 with \
             AES-128-GCM, {connections} connections; the handshakes are not measured. \
             Downloads: {big_files} big files on 2 connections. \"again\" is the first server once \
             more.",
            time.as_millis(),
            big_bytes >> 20,
            self.memory_bytes >> 20,
        )
    }
}
