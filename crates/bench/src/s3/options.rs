//! Defines the options of `haul bench s3`, and the note of the report that explains the rows.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::named::named;
use crate::net::http::s3::SignatureKind;
use crate::options::{count, rounds, size};

/// Options of `haul bench s3`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the files of the servers; some GiB must be free
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Parts to measure: put, get, list
    ///
    /// put: objects stored per second, each with a new key. get: reads of objects that were stored
    /// recently. list: keys per second of a listing in pages of 1000 keys, one after the other.
    #[arg(
        long = "only",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "put,get,list"
    )]
    pub parts: Vec<Part>,
    /// Servers to compare with haul serve: seaweedfs, versitygw, garage
    ///
    /// Without this option, those that are installed are compared.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub rivals: Option<Vec<Rival>>,
    /// Place of the signatures, of version 4: header, presigned
    ///
    /// header: the header Authorization, with the checksum of the body of a PUT. presigned: the
    /// query, as in presigned URLs, without a checksum of the body (UNSIGNED-PAYLOAD).
    #[arg(long, value_name = "PLACE", default_value = "header")]
    pub signature: SignatureKind,
    /// Sizes of the objects that are stored and read, 1 B to 16MiB
    #[arg(long = "sizes", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "4KiB,64KiB", value_parser = object_size)]
    pub object_bytes: Vec<u64>,
    /// Number of connections that store and read
    #[arg(long, value_name = "N", default_value = "16", value_parser = count(1..=1000))]
    pub connections: usize,
    /// Number of objects that each measurement stores
    #[arg(long, value_name = "N", default_value = "4000", value_parser = count(1..=1_000_000))]
    pub puts: usize,
    /// Number of objects that each measurement reads
    #[arg(long, value_name = "N", default_value = "20000", value_parser = count(1..=100_000_000))]
    pub gets: usize,
    /// Number of keys that are listed
    #[arg(long, value_name = "N", default_value = "100000", value_parser = count(1..=100_000_000))]
    pub list_keys: usize,
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
    /// The directories to search for rivals, in the format of `PATH`.
    #[arg(skip)]
    pub path: OsString,
}

named! {
    /// A part of the benchmark.
    pub enum Part {
        /// PUT requests with new keys.
        Put = "put",
        /// GET requests of objects that were stored recently.
        Get = "get",
        /// Listings of a bucket.
        List = "list",
    }
}

named! {
    /// An S3 server that is compared with `haul serve`.
    pub enum Rival {
        /// SeaweedFS: master, volume server, filer and S3 gateway in one process.
        SeaweedFs = "seaweedfs",
        /// The Versity gateway with files of a file system.
        VersityGw = "versitygw",
        /// Garage, a cluster of one node.
        Garage = "garage",
    }
}

fn object_size(text: &str) -> Result<u64, String> {
    size(text, 1..=16 << 20, "a size from 1 B to 16MiB")
}

impl Options {
    /// Returns `true` if a rival is to be measured, if it is installed.
    pub(super) fn selects(&self, rival: Rival) -> bool {
        self.rivals.as_ref().is_none_or(|rivals| rivals.contains(&rival))
    }

    /// Returns a note that explains the rows.
    pub(super) fn note(&self) -> String {
        let Self { rounds, connections, puts, gets, list_keys, .. } = self;
        let signature = match self.signature {
            SignatureKind::Header => {
                "all requests are signed with version 4 in the header, and the signature of a PUT \
                 covers the checksum of its body"
            }
            SignatureKind::Presigned => {
                "all requests are presigned: signed with version 4 in the query, and the signature \
                 of a PUT does not cover its body (UNSIGNED-PAYLOAD)"
            }
        };
        format!(
            "{rounds} interleaved rounds; numbers are medians, ratios are medians of the ratios of \
             pairs of one round. One core for the server, one for the load, on loopback; \
             {connections} persistent connections; {signature}. PUT: {puts} objects with new keys. \
             GET: {gets} requests for 1000 objects in random order, which were stored and read \
             before. PUT and GET requests are signed before the measured time. LIST: {list_keys} \
             keys in pages of 1000, one request after the other, each on a new connection. haul \
             serve syncs each object before it responds; in their default settings, which are used \
             here, the other servers do not. serve runs without scrub and lifecycle checks. \
             \"again\" is haul serve once more."
        )
    }
}
