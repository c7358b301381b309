//! Reports of duplicate files that are written and read again.

use haul_duplicates::report::{Format, Report, Writer, read};

/// Writes a report, and reads it again.
///
/// # Panics
/// If it cannot be read.
#[must_use]
pub(crate) fn round_trip(report: &Report, format: Format) -> Report {
    let mut writer = Writer::begin(Vec::new(), format, &report.header).unwrap();
    report.groups.iter().for_each(|group| writer.group(group).unwrap());
    let written = writer.end().unwrap();
    read(&mut &written[..]).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&written));
    })
}

/// `true` if the default format can state the texts of a report, as it can those of each report of
/// haul or fclones. JSON can have other texts in their places.
#[must_use]
pub(crate) fn is_plain(report: &Report) -> bool {
    let is_hash = |hash: &str| !hash.is_empty() && hash.bytes().all(|b| b.is_ascii_alphanumeric());
    report.groups.iter().all(|group| is_hash(&group.hash))
        && !report.header.program.contains(char::is_control)
}

/// Returns a report without what the default format cannot state: the identities of files, the
/// numbers of scanned files, and fractions of a millisecond.
#[must_use]
pub(crate) fn without_details(mut report: Report) -> Report {
    let members = report.groups.iter_mut().flat_map(|group| &mut group.members);
    members.for_each(|member| member.identity = None);
    (report.header.stats.scanned_files, report.header.stats.scanned_bytes) = (0, 0);
    let ns = &mut report.header.timestamp.0;
    *ns -= ns.rem_euclid(1_000_000);
    report
}
