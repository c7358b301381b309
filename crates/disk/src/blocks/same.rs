//! Proves without reading the data that two files are equal: they share all their blocks.

use super::extent::{DelayedAllocation, Extent, ExtentFlags, ExtentMap};

/// `true` if the extent maps of two files, each `bytes` bytes long, prove equal content: every byte
/// is in the same shared block, or reads as zero in both files.
///
/// `false` proves nothing: compare the bytes. Both maps must cover whole files in the same file
/// system. They must be fetched with [`DelayedAllocation::Sync`]: otherwise the file system may
/// report the old location of a byte that was overwritten and not synced. The result is valid for
/// the moment at which the maps were fetched. Before acting on the result, let the kernel compare
/// the bytes (`FIDEDUPERANGE`).
///
/// # Limits
/// Files that consist only of holes, and compressed files, are never proven equal. Files whose
/// blocks lack the shared flag are not proven equal either, because some network file systems
/// report the offset in the file as the location.
#[must_use]
pub fn same_blocks(a: &ExtentMap, b: &ExtentMap, bytes: u64) -> bool {
    same_blocks_at(a, 0, b, 0, bytes)
}

/// `true` if the extent maps prove that two file ranges have equal bytes: `bytes` bytes from
/// `a_offset` on in one file, and from `b_offset` on in another or the same file. Like
/// [`same_blocks`], except that the maps need to cover only the two ranges.
#[must_use]
pub fn same_blocks_at(
    a: &ExtentMap,
    a_offset: u64,
    b: &ExtentMap,
    b_offset: u64,
    bytes: u64,
) -> bool {
    let (Some(a), Some(b)) = (runs(a, a_offset, bytes), runs(b, b_offset, bytes)) else {
        return false;
    };
    !a.is_empty() && a == b
}

/// A range that is contiguous in the file and on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// The distance from the start of the compared range.
    logical: u64,
    physical: u64,
    bytes: u64,
}

/// Returns the shared blocks in a file range, with adjacent extents merged; `None` if the map
/// contains blocks with unknown content in the range, or was fetched without a sync.
fn runs(map: &ExtentMap, offset: u64, bytes: u64) -> Option<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::with_capacity(map.extents.len());
    if map.delayed_allocation != DelayedAllocation::Sync {
        return None;
    }
    let end = offset.saturating_add(bytes);
    // Blocks beyond a file's end are ignored: xfs preallocates them for later appends.
    let is_within = |extent: &&Extent| {
        let is_before = extent.bytes > 0 && extent.logical.saturating_add(extent.bytes) <= offset;
        extent.logical < end && !is_before
    };
    for extent in map.extents.iter().filter(is_within) {
        let Some(next) = run(extent, offset, end)? else { continue };
        match runs.last_mut() {
            // Extents out of order or overlapping do not form a valid map.
            Some(run) if next.logical < run.logical + run.bytes => return None,
            Some(run)
                if next.logical == run.logical + run.bytes
                    && next.physical == run.physical + run.bytes =>
            {
                run.bytes += next.bytes;
            }
            _ => runs.push(next),
        }
    }
    Some(runs)
}

/// Returns an extent's data range: `Some(None)` if the extent reads as zeros, `None` if its content
/// is unknown.
fn run(extent: &Extent, offset: u64, end: u64) -> Option<Option<Run>> {
    let ExtentFlags { unwritten, shared, .. } = extent.flags;
    let plain = ExtentFlags { last: extent.flags.last, unwritten, shared, ..Default::default() };
    if extent.flags != plain || !(unwritten || shared) {
        return None;
    }
    // Dirty pages were synced before the map was fetched, so unwritten extents hold zeros.
    if unwritten {
        return Some(None);
    }
    let before = offset.saturating_sub(extent.logical);
    let physical = extent.physical.checked_add(before).filter(|_| extent.physical > 0)?;
    let from = extent.logical + before;
    let (logical, bytes) = (from - offset, extent.bytes.saturating_sub(before).min(end - from));
    let is_valid = physical > 0 && bytes > 0 && physical.checked_add(bytes).is_some();
    is_valid.then_some(Some(Run { logical, physical, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 4096;

    fn shared(logical: u64, physical: u64, bytes: u64) -> Extent {
        let flags = ExtentFlags { shared: true, ..ExtentFlags::default() };
        Extent { logical: logical * K, physical: physical * K, bytes: bytes * K, flags }
    }

    fn same(a: &[Extent], b: &[Extent], bytes: u64) -> bool {
        let map = |extents: &[Extent]| {
            let extents = extents.to_vec();
            ExtentMap { extents, delayed_allocation: DelayedAllocation::Sync }
        };
        let proven = same_blocks(&map(a), &map(b), bytes);
        assert_eq!(proven, same_blocks(&map(b), &map(a), bytes), "symmetric");
        proven
    }

    #[test]
    fn ranges_at_other_offsets_are_compared() {
        let map = |extents: &[Extent]| ExtentMap {
            extents: extents.to_vec(),
            delayed_allocation: DelayedAllocation::Sync,
        };
        let (a, b) = (map(&[shared(0, 100, 8)]), map(&[shared(6, 101, 3), shared(9, 300, 1)]));
        let same = |a_block: u64, b_block: u64, blocks: u64| {
            same_blocks_at(&a, a_block * K, &b, b_block * K, blocks * K)
        };
        assert!(same(1, 6, 3) && same(2, 7, 2) && same(3, 8, 1));
        assert!(!same(1, 6, 4), "the last block is elsewhere");
        assert!(!same(0, 6, 3) && !same(1, 5, 3) && !same(1, 20, 1));
        assert!(same_blocks_at(&a, K, &a, K, K), "the same range");
        assert!(!same_blocks_at(&a, K, &a, 2 * K, K), "of one file");
    }

    #[test]
    fn maps_are_same_if_every_byte_has_the_same_location() {
        let one = shared(0, 100, 8);
        let with_hole = [shared(0, 100, 2), shared(4, 104, 4)];
        for (a, b, blocks, expected, why) in [
            (&[one][..], &[one][..], 8, true, "a reflink"),
            (&[one], &[shared(0, 100, 3), shared(3, 103, 5)], 8, true, "in two extents"),
            (&[one], &[shared(0, 200, 8)], 8, false, "at another location"),
            (
                &[one],
                &[shared(0, 100, 3), shared(3, 203, 5)],
                8,
                false,
                "the second half at another location",
            ),
            (&[one], &[shared(0, 100, 7)], 8, false, "a hole at the end of one"),
            (&[one], &[one], 20, true, "both end in the same hole"),
            (&[one], &[one, shared(9, 109, 1)], 20, false, "one has more behind the hole"),
            (&[one], &[shared(1, 100, 8)], 9, false, "moved in the file"),
            (&[one], &[shared(1, 101, 7)], 8, false, "a hole at the beginning"),
            (&[shared(1, 101, 7)], &[shared(1, 101, 7)], 8, true, "the same hole at the beginning"),
            (&with_hole, &with_hole, 8, true, "the same hole in the middle"),
            (&[one], &with_hole, 8, false, "a hole in one"),
            (&with_hole, &[shared(0, 100, 2), shared(5, 104, 4)], 9, false, "a longer hole"),
            (&[one], &[one, shared(8, 500, 4)], 8, true, "blocks beyond the end are no bytes"),
            (&[one], &[shared(0, 100, 12)], 8, true, "an extent that goes beyond the end"),
            (&[], &[], 8, false, "only holes"),
            (&[], &[], 0, false, "empty"),
            (&[one], &[], 8, false, "one is a hole"),
            (&[one, one], &[one, one], 8, false, "overlapping extents"),
        ] {
            assert_eq!(same(a, b, blocks * K), expected, "{why}");
        }
    }

    #[test]
    fn last_block_counts_only_up_to_the_end_of_file() {
        let (one, other) = ([shared(0, 100, 2)], [shared(0, 100, 1), shared(1, 300, 1)]);
        assert!(same(&one, &one, K + 1));
        assert!(!same(&one, &other, K + 1), "the last byte is at another location");
        assert!(same(&one, &other, K), "the difference is beyond the end");
    }

    #[test]
    fn extents_other_than_plain_shared_blocks_prove_nothing() {
        type Change = fn(&mut Extent);
        let changes: [(&str, Change); 8] = [
            ("unshared", |extent| extent.flags.shared = false),
            ("unknown", |extent| extent.flags.unknown = true),
            ("delayed", |extent| extent.flags.delayed = true),
            ("encoded", |extent| extent.flags.encoded = true),
            ("inline", |extent| extent.flags.inline = true),
            ("unknown flag", |extent| extent.flags.other = true),
            ("no location", |extent| extent.physical = 0),
            ("overflowing location", |extent| extent.physical = u64::MAX),
        ];
        for (why, change) in changes {
            let mut extent = shared(0, 100, 8);
            change(&mut extent);
            assert!(!same(&[extent], &[extent], 8 * K), "{why}");
            assert!(!same(&[shared(0, 100, 8), extent], &[shared(0, 100, 8), extent], 8 * K));
        }
        let mut last = shared(0, 100, 8);
        last.flags.last = true;
        assert!(same(&[last], &[shared(0, 100, 8)], 8 * K), "the `last` flag is ignored");
    }

    #[test]
    fn unwritten_extents_count_as_holes() {
        let unwritten = |logical, blocks, is_shared| {
            let mut extent = shared(logical, 300 + logical, blocks);
            extent.flags = ExtentFlags { unwritten: true, shared: is_shared, ..extent.flags };
            extent
        };
        let one = shared(0, 100, 8);
        for is_shared in [false, true] {
            assert!(same(&[one, unwritten(8, 4, is_shared)], &[one], 12 * K));
            assert!(same(
                &[one, unwritten(8, 4, is_shared)],
                &[one, unwritten(9, 3, false)],
                12 * K
            ));
            assert!(!same(&[one, unwritten(8, 4, is_shared)], &[one, shared(8, 308, 4)], 12 * K));
            assert!(!same(&[unwritten(0, 8, is_shared)], &[unwritten(0, 8, is_shared)], 8 * K));
            let mut delayed = unwritten(8, 4, is_shared);
            delayed.flags.delayed = true;
            assert!(!same(&[one, delayed], &[one, delayed], 12 * K));
        }
    }

    #[test]
    fn maps_fetched_without_sync_prove_nothing() {
        let reported = ExtentMap {
            extents: vec![shared(0, 100, 8)],
            delayed_allocation: DelayedAllocation::Report,
        };
        let written = ExtentMap { delayed_allocation: DelayedAllocation::Sync, ..reported.clone() };
        assert!(same_blocks(&written, &written, 8 * K));
        assert!(!same_blocks(&written, &reported, 8 * K));
        assert!(!same_blocks(&reported, &reported, 8 * K));
    }
}
