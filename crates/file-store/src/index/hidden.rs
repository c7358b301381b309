//! Damaged ranges whose needles no index knows, and the keys that they may hide. Pure.
//!
//! The log has a key's needles in the order of the key's states: writers hold the key's lock, and
//! compaction moves only the newest needle, under the same lock. So the state of a key is certain
//! if its newest known needle lies after all hidden ranges. Any other key, and any absent one, may
//! have a newer state in such a range.

use std::collections::BTreeSet;
use std::path::PathBuf;

use haul_append_log::Lsn;

use crate::clock::Version;
use crate::error::Error;

/// A damaged range in a volume, whose needles are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HiddenRange {
    pub(crate) volume: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The volume's file.
    pub(crate) file: PathBuf,
    /// The check that failed.
    pub(crate) what: String,
}

impl HiddenRange {
    fn end(&self) -> Lsn {
        Lsn::new(self.volume, self.to)
    }

    /// Returns the error for keys that may be hidden in this range.
    pub(crate) fn error(&self) -> Error {
        let what = format!(
            "{}; the newest state of the requested key may have been in this place (see \
             \"haul store accept-damage\")",
            self.what
        );
        Error::Damaged { file: self.file.clone(), offset: self.from.into(), what }
    }
}

/// All hidden ranges, and the keys that are certainly absent.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    ranges: Vec<HiddenRange>,
    /// Keys, and buckets (with an empty key), whose newest known needle is a deletion after all
    /// hidden ranges.
    absent: BTreeSet<(String, String)>,
    /// The greatest version when the store was opened. No range hides an upload that was started
    /// later.
    newest_at_open: Version,
}

impl Hidden {
    /// Creates the ranges that are hidden in a store whose greatest version is `newest_at_open`.
    pub(crate) fn new(ranges: Vec<HiddenRange>, newest_at_open: Version) -> Self {
        Self { ranges, absent: BTreeSet::new(), newest_at_open }
    }

    pub(crate) fn ranges(&self) -> &[HiddenRange] {
        &self.ranges
    }

    /// Returns the end of the last hidden range.
    pub(crate) fn end(&self) -> Option<Lsn> {
        self.ranges.iter().map(HiddenRange::end).max()
    }

    /// Records a deletion that lies after all hidden ranges.
    pub(crate) fn mark_absent(&mut self, bucket: &str, key: &str) {
        if !self.ranges.is_empty() {
            self.absent.insert((bucket.to_owned(), key.to_owned()));
        }
    }

    /// Returns a range that may hide a newer state of a key (of a bucket, if the key is empty)
    /// whose newest known needle is at `newest`.
    pub(crate) fn range_hiding(
        &self,
        bucket: &str,
        key: &str,
        newest: Option<Lsn>,
    ) -> Option<&HiddenRange> {
        match newest {
            Some(newest) => self.ranges.iter().find(|range| newest < range.end()),
            None if self.ranges.is_empty() => None,
            None if self.absent.contains(&(bucket.to_owned(), key.to_owned())) => None,
            None => self.ranges.first(),
        }
    }

    /// Returns a range that may hide parts or the end of an upload that was started at `started`.
    pub(crate) fn range_hiding_upload(&self, started: Version) -> Option<&HiddenRange> {
        self.ranges.first().filter(|_| started <= self.newest_at_open)
    }

    /// Returns the first range, for requests that depend on all keys.
    pub(crate) fn any(&self) -> Option<&HiddenRange> {
        self.ranges.first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(volume: u32, from: u32, to: u32) -> HiddenRange {
        HiddenRange { volume, from, to, file: PathBuf::new(), what: String::new() }
    }

    #[test]
    fn key_is_certain_only_behind_all_hidden_ranges() {
        let mut hidden = Hidden::new(vec![range(2, 4096, 8192), range(4, 5000, 6000)], Version(10));
        let in_doubt = |hidden: &Hidden, volume, offset| {
            hidden.range_hiding("b", "k", Some(Lsn::new(volume, offset))).is_some()
        };
        for (volume, offset, expected) in
            [(1, 9000, true), (2, 9000, true), (4, 4096, true), (4, 6000, false), (5, 4096, false)]
        {
            assert_eq!(in_doubt(&hidden, volume, offset), expected, "{volume}:{offset}");
        }
        assert!(hidden.range_hiding("b", "k", None).is_some());
        hidden.mark_absent("b", "k");
        assert!(hidden.range_hiding("b", "k", None).is_none());
        assert!(hidden.range_hiding("b", "", None).is_some(), "the bucket is not settled");
        assert!(hidden.range_hiding_upload(Version(10)).is_some());
        assert!(hidden.range_hiding_upload(Version(11)).is_none());
    }

    #[test]
    fn without_hidden_ranges_everything_is_certain() {
        let hidden = Hidden::default();
        assert!(hidden.range_hiding("b", "k", None).is_none() && hidden.any().is_none());
        assert!(hidden.range_hiding("b", "k", Some(Lsn::default())).is_none());
        assert!(hidden.range_hiding_upload(Version(0)).is_none());
    }
}
