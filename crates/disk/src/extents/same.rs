//! Whether two files are on the same blocks.

use super::{Extent, ExtentFlags, ExtentMap, Unplaced};

/// Whether the maps of two files of `bytes` bytes each prove that both hold the same bytes: every
/// byte is in the same shared block, or reads as zero in both.
///
/// `false` proves nothing: read them. Both maps must be of the whole file, of the same file
/// system, and asked for with [`Unplaced::Write`]: what was written to a shared file stands at the
/// place of its old bytes until it is on the medium. They are true of the time they were asked
/// for; whoever acts upon equality lets the kernel compare again (`FIDEDUPERANGE`).
///
/// # Limits
/// Files of holes alone and compressed ones are never proven equal, nor are files whose blocks the
/// file system does not call shared: on some network file systems the place is just the offset in
/// the file.
#[must_use]
pub fn same_blocks(a: &ExtentMap, b: &ExtentMap, bytes: u64) -> bool {
    let (Some(a), Some(b)) = (runs(a, bytes), runs(b, bytes)) else { return false };
    !a.is_empty() && a == b
}

/// Bytes in one piece, in the file and on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    logical: u64,
    physical: u64,
    bytes: u64,
}

/// The shared pieces of a file, joined where one map has two extents and the other one; `None`
/// where something else is in it.
fn runs(map: &ExtentMap, file_bytes: u64) -> Option<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::with_capacity(map.extents.len());
    if map.unplaced != Unplaced::Write {
        return None;
    }
    // Blocks beyond the end of the file are of no interest: xfs sets some aside there.
    for extent in map.extents.iter().filter(|extent| extent.logical < file_bytes) {
        let Some(next) = run(extent, file_bytes)? else { continue };
        match runs.last_mut() {
            // Told out of order, or twice: not a map to rely on.
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

/// What an extent adds to the data: nothing, where it reads as zeros; `None` where nobody knows.
fn run(extent: &Extent, file_bytes: u64) -> Option<Option<Run>> {
    let ExtentFlags { unwritten, shared, .. } = extent.flags;
    let plain = ExtentFlags { last: extent.flags.last, unwritten, shared, ..Default::default() };
    if extent.flags != plain || !(unwritten || shared) {
        return None;
    }
    // All that is dirty was written before the map was told, and gave up being unwritten.
    if unwritten {
        return Some(None);
    }
    let (logical, physical) = (extent.logical, extent.physical);
    let bytes = extent.bytes.min(file_bytes - logical);
    let is_sound = physical > 0 && bytes > 0 && physical.checked_add(bytes).is_some();
    is_sound.then_some(Some(Run { logical, physical, bytes }))
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
            ExtentMap { extents, unplaced: Unplaced::Write }
        };
        let there = same_blocks(&map(a), &map(b), bytes);
        assert_eq!(there, same_blocks(&map(b), &map(a), bytes), "one way and the other");
        there
    }

    #[test]
    fn maps_are_the_same_when_every_byte_is_at_the_same_place() {
        let one = shared(0, 100, 8);
        let with_hole = [shared(0, 100, 2), shared(4, 104, 4)];
        for (a, b, blocks, expected, why) in [
            (&[one][..], &[one][..], 8, true, "a reflink"),
            (&[one], &[shared(0, 100, 3), shared(3, 103, 5)], 8, true, "told in two pieces"),
            (&[one], &[shared(0, 200, 8)], 8, false, "elsewhere"),
            (
                &[one],
                &[shared(0, 100, 3), shared(3, 203, 5)],
                8,
                false,
                "the second half elsewhere",
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
            (&[], &[], 8, false, "holes alone: nothing says that they are the same file's"),
            (&[], &[], 0, false, "nothing at all"),
            (&[one], &[], 8, false, "one is a hole"),
            (&[one, one], &[one, one], 8, false, "told twice"),
        ] {
            assert_eq!(same(a, b, blocks * K), expected, "{why}");
        }
    }

    #[test]
    fn the_tail_of_a_block_belongs_to_the_file_only_up_to_its_end() {
        let (one, other) = ([shared(0, 100, 2)], [shared(0, 100, 1), shared(1, 300, 1)]);
        assert!(same(&one, &one, K + 1));
        assert!(!same(&one, &other, K + 1), "the last byte is elsewhere");
        assert!(same(&one, &other, K), "what differs is beyond the end");
    }

    #[test]
    fn what_is_not_plainly_on_shared_blocks_proves_nothing() {
        type Change = fn(&mut Extent);
        let changes: [(&str, Change); 8] = [
            ("unshared", |extent| extent.flags.shared = false),
            ("unknown", |extent| extent.flags.unknown = true),
            ("delayed", |extent| extent.flags.delayed = true),
            ("encoded", |extent| extent.flags.encoded = true),
            ("inline", |extent| extent.flags.inline = true),
            ("newer", |extent| extent.flags.other = true),
            ("at no place", |extent| extent.physical = 0),
            ("past all numbers", |extent| extent.physical = u64::MAX),
        ];
        for (why, change) in changes {
            let mut extent = shared(0, 100, 8);
            change(&mut extent);
            assert!(!same(&[extent], &[extent], 8 * K), "{why}");
            assert!(!same(&[shared(0, 100, 8), extent], &[shared(0, 100, 8), extent], 8 * K));
        }
        let mut last = shared(0, 100, 8);
        last.flags.last = true;
        assert!(same(&[last], &[shared(0, 100, 8)], 8 * K), "the last one or not says nothing");
    }

    #[test]
    fn blocks_set_aside_are_a_hole() {
        let aside = |logical, blocks, shared_too| {
            let mut extent = shared(logical, 300 + logical, blocks);
            extent.flags = ExtentFlags { unwritten: true, shared: shared_too, ..extent.flags };
            extent
        };
        let one = shared(0, 100, 8);
        for shared_too in [false, true] {
            assert!(same(&[one, aside(8, 4, shared_too)], &[one], 12 * K));
            assert!(same(&[one, aside(8, 4, shared_too)], &[one, aside(9, 3, false)], 12 * K));
            assert!(!same(&[one, aside(8, 4, shared_too)], &[one, shared(8, 308, 4)], 12 * K));
            assert!(!same(&[aside(0, 8, shared_too)], &[aside(0, 8, shared_too)], 8 * K));
            let mut unsure = aside(8, 4, shared_too);
            unsure.flags.delayed = true;
            assert!(!same(&[one, unsure], &[one, unsure], 12 * K));
        }
    }

    #[test]
    fn a_map_that_may_be_older_than_the_bytes_proves_nothing() {
        let told = ExtentMap { extents: vec![shared(0, 100, 8)], unplaced: Unplaced::Tell };
        let written = ExtentMap { unplaced: Unplaced::Write, ..told.clone() };
        assert!(same_blocks(&written, &written, 8 * K));
        assert!(!same_blocks(&written, &told, 8 * K));
        assert!(!same_blocks(&told, &told, 8 * K));
    }
}
