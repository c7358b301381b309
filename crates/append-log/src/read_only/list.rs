//! Lists and opens the segments in a log that another process may be writing.

use std::sync::Arc;

use haul_disk::{Disk, Open};

use super::report::ReadOnlyReport;
use crate::error::{Error, Result};
use crate::names::{self, Name};
use crate::options::{OnDamage, Options};
use crate::read::scan::is_first_page_zero;
use crate::replay::Damage;
use crate::segments::chain::{Chain, chain};
use crate::segments::{Segment, Segments, lost_segments};

/// The mode for opening segments read-only.
const READ: Open = Open { direct: false, dsync: false, random: false, read_only: true };

/// The number of attempts to open all listed segments while another process removes segments.
const TRIES: u32 = 64;

/// A log's opened segments: those with records, those without, and the ends of segments that later
/// headers declare.
pub(super) struct SegmentList {
    pub(super) segments: Segments,
    pub(super) unused: Segments,
    pub(super) chain: Chain,
}

/// Opens all the log's segments as they existed at one moment.
///
/// 1. Lists the directory, opens each segment's file and reads its header.
/// 2. Lists the directory again. A file is recycled only after it was renamed, so the bytes read
///    from a file that still has its name are valid. If a listed segment no longer has its name,
///    the function starts again.
pub(super) fn list(
    disk: &dyn Disk,
    options: &Options,
    report: &mut ReadOnlyReport,
) -> Result<SegmentList> {
    let on_damage = options.on_damage;
    let mut segments = open_all(disk, on_damage, report)?;
    let links: Vec<_> = segments.values().map(|s| (s.number, s.follows)).collect();
    let chain = chain(&links);
    segments.retain(|number, _| !chain.detached.contains(number));
    let mut unused = Segments::new();
    while let Some(last) = segments.last_entry() {
        if !is_first_page_zero(last.get(), &last.get().file)? {
            break;
        }
        let (number, segment) = last.remove_entry();
        unused.insert(number, segment);
    }
    let is_checked = options.removes_in_order;
    let lost = is_checked.then(|| lost_segments(disk.root(), &segments, &report.damage));
    let lost = lost.unwrap_or_default();
    if let (OnDamage::Refuse, Some(Damage { file, offset, what, .. })) = (on_damage, lost.first()) {
        return Err(Error::Damaged { file: file.clone(), offset: *offset, what: what.clone() });
    }
    report.damage.extend(lost);
    Ok(SegmentList { segments, unused, chain })
}

fn open_all(disk: &dyn Disk, on_damage: OnDamage, report: &mut ReadOnlyReport) -> Result<Segments> {
    let mut missing = 0;
    for _ in 0..TRIES {
        let numbers = numbers(disk)?;
        let (mut segments, mut damage) = (Segments::new(), Vec::new());
        let mut header_damage = Vec::new();
        let mut lost = None;
        for number in &numbers {
            match Segment::open(disk, *number, READ) {
                Ok((segment, damaged)) => {
                    segments.insert(*number, Arc::new(segment));
                    header_damage.extend(damaged);
                }
                Err(_) if !has_name(disk, *number)? => {
                    lost = Some(*number);
                    break;
                }
                Err(Error::Damaged { file, offset, what }) => {
                    damage.push(Damage { file, offset, end: u64::MAX, what });
                }
                Err(error) => return Err(error),
            }
        }
        let now = self::numbers(disk)?;
        lost = lost.or_else(|| numbers.iter().find(|number| !now.contains(number)).copied());
        let Some(number) = lost else {
            if let (OnDamage::Refuse, Some(first)) = (on_damage, damage.first()) {
                let Damage { file, offset, what, .. } = first.clone();
                return Err(Error::Damaged { file, offset, what });
            }
            (report.damage, report.header_damage) = (damage, header_damage);
            return Ok(segments);
        };
        missing = number;
    }
    Err(Error::SegmentRemoved { file: disk.root().join(names::segment(missing)) })
}

fn numbers(disk: &dyn Disk) -> Result<Vec<u32>> {
    let number = |name: &String| match names::parse(name) {
        Name::Segment(number) => Some(number),
        _ => None,
    };
    Ok(disk.list("")?.iter().filter_map(number).collect())
}

/// `true` if segment `number` has a file under its name.
pub(super) fn has_name(disk: &dyn Disk, number: u32) -> Result<bool> {
    match disk.open(&names::segment(number), READ) {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}
