//! `haul store map`: shows the live and dead parts of each volume.

mod parts;
mod picture;

use haul_cli_common::svg;
use haul_file_store::VolumeMap;
use haul_store_pool::Pool;
use serde_json::json;

use self::parts::{State, parts};
use super::missing;
use crate::args::MapArgs;
use crate::output::Output;
use crate::report::{OrFail, Result};
use crate::units::{Bytes, Count};

/// The number of characters of the bar of a volume.
const BAR: usize = 48;

pub(super) fn run(store: &Pool, args: &MapArgs) -> Result {
    let cannot = || "cannot map the volumes".to_owned();
    let mut all = Vec::new();
    let mut members = Vec::new();
    for member in store.members() {
        let Ok(store) = member.store() else { continue };
        let maps = store.volume_maps().or_fail(cannot)?;
        members.push((member.dir(), all.len()..all.len() + maps.len()));
        all.extend(maps);
    }
    if let Some(file) = &args.svg {
        svg::write(file, &picture::picture(&all, &totals(&all)))?;
    }
    let mut output = Output::new();
    if args.json {
        for (dir, maps) in &members {
            for map in &all[maps.clone()] {
                output.line(json!({
                    "dir": dir.to_string_lossy(),
                    "volume": map.number,
                    "bytes": map.bytes,
                    "live_bytes": map.needle_bytes(true),
                    "dead_bytes": map.needle_bytes(false),
                }))?;
            }
        }
    } else {
        for (dir, maps) in &members {
            // Each directory numbers its own volumes.
            if store.members().len() > 1 {
                output.line(format_args!("{}:", dir.display()))?;
            }
            all[maps.clone()].iter().try_for_each(|map| output.line(volume_line(map)))?;
        }
        output.line(format_args!("{}; █ live, ░ dead, · not written", totals(&all)))?;
    }
    output.finish()?;
    missing::report(store, "mapped")
}

fn volume_line(map: &VolumeMap) -> String {
    let (live, dead) = (map.needle_bytes(true), map.needle_bytes(false));
    format!("{:>6} {} {} live, {} dead", map.number, bar(map), Bytes(live), Bytes(dead))
}

/// Describes all volumes in one line.
fn totals(maps: &[VolumeMap]) -> String {
    let sum = |of: fn(&VolumeMap) -> u64| Bytes(maps.iter().map(of).sum());
    format!(
        "{}, {}: {} live, {} dead",
        Count(maps.len() as u64, "volume"),
        sum(|map| map.bytes),
        sum(|map| map.needle_bytes(true)),
        sum(|map| map.needle_bytes(false)),
    )
}

fn bar(map: &VolumeMap) -> String {
    let character = |state: &State| match state {
        State::Empty => '·',
        State::Written { live } if *live >= 0.875 => '█',
        State::Written { live } if *live >= 0.5 => '▓',
        State::Written { live } if *live >= 0.125 => '▒',
        State::Written { .. } => '░',
    };
    parts(map, BAR).iter().map(character).collect()
}

#[cfg(test)]
mod tests {
    use haul_file_store::VolumeExtent;

    use super::*;

    #[test]
    fn bar_shows_the_state_of_each_part() {
        let extent = |offset, bytes, is_live| VolumeExtent { offset, bytes, is_live };
        let extents = vec![
            extent(0, 1200, true),
            extent(1200, 600, true),
            extent(1800, 600, false),
            extent(2400, 1200, false),
        ];
        let map = VolumeMap { number: 12, bytes: 4800, extents };
        let bar = format!("{}{}{}", "█".repeat(18), "░".repeat(18), "·".repeat(12));
        assert_eq!(volume_line(&map), format!("    12 {bar} 1.8 KiB live, 1.8 KiB dead"));
        assert_eq!(totals(&[map]), "1 volume, 4.7 KiB: 1.8 KiB live, 1.8 KiB dead");
    }
}
