//! The volume map for the console: each volume's live and dead parts as cells. Pure.

use haul_file_store::VolumeMap;
use serde_json::{Value, json};

/// The number of cells for a volume.
const CELLS: u64 = 64;

/// The number of steps from a cell without live bytes to a cell with live bytes only.
const STEPS: u64 = 8;

/// Returns the volumes. A cell is null if nothing was written there, otherwise the live share of
/// its needles, from 0 to [`STEPS`].
pub(super) fn json(maps: &[VolumeMap]) -> Value {
    let volume = |map: &VolumeMap| {
        json!({
            "number": map.number,
            "bytes": map.bytes,
            "live_bytes": map.needle_bytes(true),
            "dead_bytes": map.needle_bytes(false),
            "cells": cells(map),
        })
    };
    maps.iter().map(volume).collect()
}

fn cells(map: &VolumeMap) -> Vec<Option<u64>> {
    let bound = |cell: u64| map.bytes / CELLS * cell + map.bytes % CELLS * cell / CELLS;
    let cell = |cell: u64| {
        let (start, end) = (bound(cell), bound(cell + 1));
        let (mut live, mut all) = (0, 0);
        for extent in &map.extents {
            let inside = (extent.offset + extent.bytes).min(end);
            let bytes = inside.saturating_sub(extent.offset.max(start));
            all += bytes;
            live += if extent.is_live { bytes } else { 0 };
        }
        // A few live bytes are visible, and so are a few dead bytes.
        (all > 0).then(|| match (live, all - live) {
            (0, _) => 0,
            (_, 0) => STEPS,
            _ => (live * STEPS / all).clamp(1, STEPS - 1),
        })
    };
    (0..CELLS).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use haul_file_store::VolumeExtent;

    use super::*;

    #[test]
    fn cells_show_the_live_part_of_their_needles() {
        let extent = |offset, bytes, is_live| VolumeExtent { offset, bytes, is_live };
        let extents = vec![
            extent(0, 100, true),
            extent(100, 50, false),
            extent(150, 1, true),
            extent(151, 49, false),
            extent(200, 100, false),
        ];
        let map = VolumeMap { number: 7, bytes: 6400, extents };
        let cells = cells(&map);
        assert_eq!(cells.len(), 64);
        assert_eq!(cells[..4], [Some(8), Some(1), Some(0), None]);
        let json = json(&[map]);
        assert_eq!((&json[0]["live_bytes"], &json[0]["dead_bytes"]), (&101.into(), &199.into()));
    }

    #[test]
    fn empty_volume_has_empty_cells() {
        let map = VolumeMap { number: 1, bytes: 0, extents: Vec::new() };
        assert!(cells(&map).iter().all(Option::is_none));
    }
}
