//! Decides what to copy of a key. Pure.

use crate::model::{Key, Version, part_count};

/// What to do with a key that the source has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyPlan {
    /// The target has the same.
    Same,
    /// Copy the versions from this index on. In a bucket without versions, the index is 0.
    Copy(usize),
    /// The ETags differ, but the lengths are equal and the target is newer: the same content if the
    /// ETag of the source is not one that the target could have computed.
    CopyUnlessOpaque,
    /// The target has other versions. They are left alone.
    Different,
}

/// Plans the copy of an object in a bucket without versions.
pub(crate) fn plan_object(source: &Key, target: Option<&Key>) -> KeyPlan {
    let (Some(source), Some(target)) = (source.latest(), target.and_then(Key::latest)) else {
        return KeyPlan::Copy(0);
    };
    if source.bytes != target.bytes {
        return KeyPlan::Copy(0);
    }
    if source.etag == target.etag {
        return KeyPlan::Same;
    }
    match (source.modified, target.modified) {
        (Some(source), Some(target)) if source < target => KeyPlan::CopyUnlessOpaque,
        _ => KeyPlan::Copy(0),
    }
}

/// Plans the copy of the versions of a key.
pub(crate) fn plan_versions(source: &Key, target: Option<&Key>) -> KeyPlan {
    let target = target.map_or(&[][..], |target| &target.versions);
    let is_prefix = target.len() <= source.versions.len()
        && source.versions.iter().zip(target).all(|(source, target)| is_same(source, target));
    match is_prefix {
        true if target.len() == source.versions.len() => KeyPlan::Same,
        true => KeyPlan::Copy(target.len()),
        false => KeyPlan::Different,
    }
}

/// `true` if a version of the target may be a copy of one of the source. The ETag of an upload in
/// parts of several lengths cannot always be reproduced, so that the length alone counts for it.
fn is_same(source: &Version, target: &Version) -> bool {
    let is_etag_same = source.etag == target.etag || part_count(&source.etag).is_some();
    (source.is_delete_marker, source.bytes) == (target.is_delete_marker, target.bytes)
        && (source.is_delete_marker || is_etag_same)
}

/// The length of the pieces of an object that is too long for one request.
const PIECE_BYTES: u64 = 64 << 20;

/// The maximum length of a piece: that of S3.
pub(crate) const PART_BYTES_MAX: u64 = 5 << 30;

/// The maximum number of parts of an upload: that of S3.
const PARTS_MAX: u64 = 10_000;

/// Returns the ranges of the parts of an object, each the offset of its first byte and that after
/// its last one, if all parts but the last one have the same length.
pub(crate) fn equal_parts(bytes: u64, part_bytes: u64) -> Vec<std::ops::Range<u64>> {
    let part_bytes = part_bytes.max(1);
    let mut parts = Vec::new();
    let mut start = 0;
    while start < bytes || parts.is_empty() {
        let end = bytes.min(start + part_bytes);
        parts.push(start..end);
        start = end;
    }
    parts
}

/// Returns the length of parts that gives this number of parts: that of the first part if it does,
/// otherwise the usual ones are tried.
pub(crate) fn part_bytes(bytes: u64, count: u32, first: Option<u64>) -> u64 {
    let count = u64::from(count);
    let fits = |part: &u64| *part > 0 && bytes.div_ceil(*part).max(1) == count;
    let usual = [8, 5, 16, 10, 15, 32, 50, 64, 100, 128, 256, 512, 1024].map(|mib: u64| mib << 20);
    let least = || bytes.div_ceil(count).next_multiple_of(1 << 20);
    first.into_iter().chain(usual).find(fits).unwrap_or_else(least)
}

/// Returns the length of the parts of an object that was not stored in parts, and is too long for
/// one request.
pub(crate) fn piece_bytes(bytes: u64) -> u64 {
    PIECE_BYTES.max(bytes.div_ceil(PARTS_MAX).next_multiple_of(1 << 20))
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    fn version(etag: &str, bytes: u64) -> Version {
        Version {
            id: None,
            etag: etag.to_owned(),
            bytes,
            is_delete_marker: etag.is_empty(),
            is_latest: false,
            modified: Some(datetime!(2026-01-01 0:00 UTC)),
        }
    }

    fn key(versions: &[(&str, u64)]) -> Key {
        let versions = versions.iter().map(|(etag, bytes)| version(etag, *bytes)).collect();
        Key { name: "k".to_owned(), versions }
    }

    #[test]
    fn equal_objects_are_skipped() {
        let source = key(&[("a", 1)]);
        assert_eq!(plan_object(&source, None), KeyPlan::Copy(0));
        assert_eq!(plan_object(&source, Some(&key(&[("a", 1)]))), KeyPlan::Same);
        assert_eq!(plan_object(&source, Some(&key(&[("a", 2)]))), KeyPlan::Copy(0));
        let mut target = key(&[("b", 1)]);
        assert_eq!(plan_object(&source, Some(&target)), KeyPlan::Copy(0));
        target.versions[0].modified = Some(datetime!(2026-01-02 0:00 UTC));
        assert_eq!(plan_object(&source, Some(&target)), KeyPlan::CopyUnlessOpaque);
    }

    #[test]
    fn missing_versions_are_added_and_other_ones_left() {
        let source = key(&[("a", 1), ("", 0), ("b-2", 2)]);
        for (target, expected) in [
            (&[][..], KeyPlan::Copy(0)),
            (&[("a", 1)], KeyPlan::Copy(1)),
            (&[("a", 1), ("", 0)], KeyPlan::Copy(2)),
            (&[("a", 1), ("", 0), ("c", 2)], KeyPlan::Same),
            (&[("a", 1), ("", 0), ("c", 3)], KeyPlan::Different),
            (&[("x", 1)], KeyPlan::Different),
            (&[("", 0)], KeyPlan::Different),
            (&[("a", 1), ("", 0), ("b-2", 2), ("d", 1)], KeyPlan::Different),
        ] {
            assert_eq!(plan_versions(&source, Some(&key(target))), expected, "{target:?}");
        }
    }

    #[test]
    fn parts_are_those_of_the_source() {
        assert_eq!(equal_parts(20, 8), [0..8, 8..16, 16..20]);
        assert_eq!(equal_parts(0, 8).len(), 1);
        let mib = 1 << 20;
        assert_eq!(part_bytes(20 * mib, 4, Some(6 * mib)), 6 * mib);
        assert_eq!(part_bytes(20 * mib, 3, None), 8 * mib);
        assert_eq!(part_bytes(20 * mib, 3, Some(20 * mib)), 8 * mib);
        assert_eq!(part_bytes(33 * mib, 11, None), 3 * mib);
        assert_eq!(part_bytes(5, 1, None), 8 * mib);
        assert_eq!(piece_bytes(1 << 43), 839 * mib);
    }
}
