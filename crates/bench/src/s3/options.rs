//! Defines the options of `haul bench s3`.

use crate::named::named;
use crate::options::{NetOptions, count, size_in};

/// Options of `haul bench s3`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// The options of every benchmark of servers.
    #[command(flatten)]
    pub net: NetOptions,
    /// Parts to measure: put, get, list
    ///
    /// put: objects stored, each with a new key; needs MinIO's warp. get: objects read from memory.
    /// list: pages of 1000 keys.
    #[arg(long = "only", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "put,get,list")]
    pub parts: Vec<Part>,
    /// Sizes of the objects that are stored and read, 1 B to 16MiB
    #[arg(long = "sizes", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "4KiB,64KiB")]
    #[arg(value_parser = size_in(1..=16 << 20, "a size from 1 B to 16MiB"))]
    pub object_bytes: Vec<u64>,
    /// Number of connections
    #[arg(long, value_name = "N", default_value = "16", value_parser = count(1..=1000))]
    pub connections: usize,
    /// Number of keys that are listed
    #[arg(long, value_name = "N", default_value = "20000", value_parser = count(1..=100_000_000))]
    pub list_keys: usize,
}

named! {
    /// A part of the benchmark.
    pub enum Part {
        /// PUT requests with new keys.
        Put = "put",
        /// GET requests of objects that were stored before.
        Get = "get",
        /// Listings of a bucket.
        List = "list",
    }
}
