//! Defines the options of a search.

use std::path::PathBuf;

use haul_bulk_read::ReadOptions;
use haul_bulk_read::digest::HashKind;

use crate::report::Replication;
use crate::transform::Transform;

/// Options of a search. [`WalkOptions`](haul_bulk_read::WalkOptions) selects the files to search.
#[derive(Clone)]
pub struct Options<'a> {
    /// Contents are reported if their number of replicas is in this range. Default: more than 1.
    pub replication: Replication,
    /// `true` to count all equal files below one root of the search as one replica.
    pub isolate: bool,
    /// `true` to count each hard link as a replica; `false` to count all links to a file as one.
    pub match_links: bool,
    /// The hash function for whole contents, whose digests appear in reports. Default: XXH3.
    pub hash: HashKind,
    /// The length in bytes of the sample at the beginning of a file. `None`: 16 KiB on rotational
    /// disks, 4 KiB on others.
    pub head_bytes: Option<u64>,
    /// The length in bytes of the sample at the end of a file. `None`: as for
    /// [`Options::head_bytes`].
    pub tail_bytes: Option<u64>,
    /// `true` to treat files as equal if their head, tail and intermediate samples are equal.
    pub skip_content: bool,
    /// A command whose output is compared instead of file contents.
    pub transform: Option<&'a Transform>,
    /// The cache file with the digests of earlier searches. It is created if it does not exist.
    pub cache: Option<PathBuf>,
    /// Options for reading files.
    pub read: ReadOptions<'a>,
    /// `true` to preserve the page cache in all rounds of reads after the first, which reads small
    /// files and samples: pages that were not cached before a read are not cached after it.
    pub preserve_cache_for_large: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            replication: Replication::Over(1),
            isolate: false,
            match_links: false,
            hash: HashKind::Xxh3,
            head_bytes: None,
            tail_bytes: None,
            skip_content: false,
            transform: None,
            cache: None,
            read: ReadOptions::default(),
            preserve_cache_for_large: true,
        }
    }
}
