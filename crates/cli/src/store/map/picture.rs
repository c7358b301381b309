//! Draws the volumes of a store as an SVG: a row for each, with live, dead and empty parts. Pure.

use haul_cli_common::svg::{Anchor, Cells, document, label};
use haul_file_store::VolumeMap;

use super::parts::{State, parts};
use crate::units::Bytes;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 104.0;
const ROW: f64 = 17.0;
/// The number of parts of the longest volume.
const PARTS: usize = 139;
/// The number of rows; if there are more volumes, the oldest ones are left out.
const ROWS_MAX: usize = 64;

/// Returns the picture. Its title is `totals`.
pub(super) fn picture(maps: &[VolumeMap], totals: &str) -> String {
    let shown = &maps[maps.len().saturating_sub(ROWS_MAX)..];
    let bytes_max = shown.iter().map(|map| map.bytes).max().unwrap_or(1).max(1);
    let mut cells = Cells::default();
    let mut marks = key();
    for (number, map) in shown.iter().enumerate() {
        let y = TOP + ROW * number as f64;
        marks += &label(LEFT - 10.0, y + 11.5, Anchor::End, "tick", &map.number.to_string());
        let width = (RIGHT - LEFT) * map.bytes as f64 / bytes_max as f64;
        row(&mut cells, map, (LEFT, y), (width, ROW - 3.0));
        let (live, dead) = (map.needle_bytes(true), map.needle_bytes(false));
        let text = match live + dead {
            0 => "not written".to_owned(),
            all => format!("{} % live", live * 100 / all),
        };
        marks += &label(RIGHT + 10.0, y + 11.5, Anchor::Start, "tick", &text);
    }
    let left_out = match maps.len() - shown.len() {
        0 => String::new(),
        count => format!("; {count} older ones are not shown"),
    };
    let hint = format!("Each row is a volume, from its start to its end{left_out}.");
    let height = TOP + ROW * shown.len() as f64 + 18.0;
    document((WIDTH, height), totals, &hint, &description(shown), &(marks + &cells.finish()))
}

fn description(maps: &[VolumeMap]) -> String {
    let volume_line = |map: &VolumeMap| {
        let (live, dead) = (Bytes(map.needle_bytes(true)), Bytes(map.needle_bytes(false)));
        format!("volume {}: {live} live, {dead} dead", map.number)
    };
    maps.iter().map(volume_line).collect::<Vec<_>>().join("; ")
}

/// Draws the parts of a volume; adjacent parts of the same colour are one rectangle.
fn row(cells: &mut Cells, map: &VolumeMap, at: (f64, f64), size: (f64, f64)) {
    let width = size.0 / PARTS as f64;
    let parts = parts(map, PARTS);
    let mut first = 0;
    for same in parts.chunk_by(|a, b| class(*a) == class(*b)) {
        let from = (at.0 + width * first as f64, at.1);
        cells.add(class(same[0]), from, (width * same.len() as f64, size.1));
        first += same.len();
    }
}

/// Returns the class of a part: from live to dead in five steps.
fn class(state: State) -> &'static str {
    match state {
        State::Empty => "empty",
        State::Written { live } if live >= 0.9 => "live",
        State::Written { live } if live >= 0.65 => "mixed3",
        State::Written { live } if live >= 0.35 => "mixed2",
        State::Written { live } if live >= 0.1 => "mixed1",
        State::Written { .. } => "dead",
    }
}

/// Explains the colours.
fn key() -> String {
    let mut cells = Cells::default();
    let mut marks = String::new();
    let mut x = LEFT;
    for (classes, text, width) in [
        (&["live"][..], "live", 60.0),
        (&["mixed3", "mixed2", "mixed1"], "both", 92.0),
        (&["dead"], "dead: replaced or deleted", 190.0),
        (&["empty"], "not written", 0.0),
    ] {
        for class in classes {
            cells.add(class, (x, 76.0), (14.0, 12.0));
            x += 14.0;
        }
        marks += &label(x + 6.0, 86.5, Anchor::Start, "tick", text);
        x += width - 14.0 * (classes.len() as f64 - 1.0);
    }
    marks + &cells.finish()
}

#[cfg(test)]
mod tests {
    use haul_file_store::VolumeExtent;
    use haul_testing::assert_well_formed;

    use super::*;

    fn map(number: u32, bytes: u64, states: &[bool]) -> VolumeMap {
        let part_bytes = bytes / 10;
        let extent = |(offset, is_live): (u64, &bool)| VolumeExtent {
            offset: offset * part_bytes,
            bytes: part_bytes,
            is_live: *is_live,
        };
        VolumeMap { number, bytes, extents: (0..).zip(states).map(extent).collect() }
    }

    #[test]
    fn each_volume_is_a_row_with_its_live_share() {
        let maps = [map(7, 1 << 20, &[true, true, true, false]), map(8, 2 << 20, &[])];
        let picture = picture(&maps, "2 volumes");
        assert_well_formed(&picture);
        for text in [">7<", ">75 % live<", ">8<", ">not written<", ">2 volumes</text>"] {
            assert!(picture.contains(text), "{text}: {picture}");
        }
        // Half as long as the longest volume, and four tenths of it are written.
        assert!(picture.contains("class=\"cell live\" d=\"M64 104h82v14h-82z\""), "{picture}");
    }

    #[test]
    fn store_with_many_volumes_has_a_small_picture() {
        let states: Vec<bool> = (0..10).map(|n| n % 2 == 0).collect();
        let maps: Vec<_> = (1..=100).map(|number| map(number, 1 << 20, &states)).collect();
        let picture = picture(&maps, "2 volumes");
        assert!(picture.contains("36 older ones are not shown") && !picture.contains(">36<"));
        assert!(picture.len() < 60_000, "{} B", picture.len());
        assert_well_formed(&super::picture(&[], ""));
    }
}
