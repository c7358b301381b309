//! Divides volumes into equal parts, and computes the state of each. Pure.

use haul_file_store::VolumeMap;

/// The state of a part of a volume.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum State {
    /// Less than a half was written.
    Empty,
    /// `live` is the live share of the written bytes.
    Written { live: f64 },
}

/// Returns the states of `count` equal parts of a volume.
pub(super) fn parts(map: &VolumeMap, count: usize) -> Vec<State> {
    let part_bytes = map.bytes as f64 / count as f64;
    let (mut live, mut dead) = (vec![0.0; count], vec![0.0; count]);
    for extent in &map.extents {
        let bytes = if extent.is_live { &mut live } else { &mut dead };
        let (from, to) = (extent.offset as f64, (extent.offset + extent.bytes) as f64);
        #[expect(clippy::cast_possible_truncation, reason = "at most the number of parts")]
        #[expect(clippy::cast_sign_loss, reason = "offsets are not negative")]
        let first = (from / part_bytes) as usize;
        for (number, bytes) in bytes.iter_mut().enumerate().skip(first) {
            let (part_from, part_to) =
                (part_bytes * number as f64, part_bytes * (number + 1) as f64);
            if part_from >= to {
                break;
            }
            *bytes += to.min(part_to) - from.max(part_from);
        }
    }
    let state = |(live, dead): (&f64, &f64)| match live + dead {
        written if written < part_bytes / 2.0 => State::Empty,
        written => State::Written { live: live / written },
    };
    live.iter().zip(&dead).map(state).collect()
}

#[cfg(test)]
mod tests {
    use haul_file_store::VolumeExtent;

    use super::*;

    #[test]
    fn parts_have_the_live_share_of_their_written_bytes() {
        let extent = |offset, bytes, is_live| VolumeExtent { offset, bytes, is_live };
        let extents = vec![extent(10, 90, true), extent(100, 75, false), extent(175, 75, true)];
        let map = VolumeMap { number: 1, bytes: 400, extents };
        let written = |live| State::Written { live };
        let expected = [written(1.0), written(0.25), written(1.0), State::Empty];
        assert_eq!(parts(&map, 4), expected);
        assert_eq!(parts(&VolumeMap { extents: Vec::new(), ..map }, 2), [State::Empty; 2]);
    }
}
