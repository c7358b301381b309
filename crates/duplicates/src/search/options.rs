//! Defines the options of a search.

use std::path::PathBuf;

use haul_bulk_read::ReadOptions;
use haul_bulk_read::digest::HashKind;

use super::replication::Replication;
use crate::transform::Transform;

/// Options of a search. [`WalkOptions`](haul_bulk_read::WalkOptions) selects the files to search.
#[derive(Clone)]
pub struct Options<'a> {
    /// The numbers of replicas for which a content is reported.
    pub replication: Replication,
    /// `true` to count all equal files below one root as one replica.
    pub isolate: bool,
    /// `true` to count each hard link as a replica; `false` to count all links to a file as one.
    pub match_links: bool,
    /// The hash function for whole contents. Its digests appear in reports.
    pub hash: HashKind,
    /// The length of the head sample in bytes; by default 4 KiB, on rotational disks 16 KiB.
    pub head_bytes: Option<u64>,
    /// The length of the tail sample in bytes, with the same defaults as the head sample.
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
