//! What the rows come to. Pure.

use super::plan::{Sync, Way};
use crate::report::{Report, Value};

const PAGE_BYTES: f64 = 4096.0;

/// A number of the first pass over pages of 4 KiB.
fn number(report: &Report, table: &str, way: Way, sync: Sync, key: &str) -> Option<f64> {
    let text = |name: &str| Value::from(name);
    report
        .rows
        .iter()
        .find(|row| {
            let is = |key, value: Value| report.value(row, key) == Some(&value);
            row.table == table
                && is("sync", text(sync.name()))
                && is("way", text(way.name()))
                && is("record_bytes", PAGE_BYTES.into())
                && is("pass", 1.0.into())
        })
        .and_then(|row| report.value(row, key)?.number())
}

/// The ratios of one table: how many times faster one way is than another, by the time of the
/// record in the middle, which the stalls of a busy machine do not move. Rows that were not
/// measured have none.
pub(super) fn of(report: &Report, table: &str) -> Vec<(String, f64)> {
    let mut ratios = Vec::new();
    let mut add = |name: &str, ratio: Option<f64>| {
        ratios.extend(ratio.filter(|r| r.is_finite()).map(|ratio| (name.to_owned(), ratio)));
    };
    let time = |way, sync| number(report, table, way, sync, "median_us");
    let versus = |one, other, sync| Some(time(other, sync)? / time(one, sync)?);
    let journal = |way| number(report, table, way, Sync::Fdatasync, "journal_writes");
    let fdatasync = Sync::Fdatasync;
    add("recycled_vs_append_fdatasync_4k", versus(Way::Recycled, Way::Append, fdatasync));
    add("recycled_vs_fallocate_fdatasync_4k", versus(Way::Recycled, Way::Fallocate, fdatasync));
    add("recycled_vs_filled_fdatasync_4k", versus(Way::Recycled, Way::Filled, fdatasync));
    let direct = Sync::DirectDsync;
    add("recycled_vs_append_direct_dsync_4k", versus(Way::Recycled, Way::Append, direct));
    add("journal_writes_per_record_recycled_4k", journal(Way::Recycled));
    add("journal_writes_per_record_append_4k", journal(Way::Append));
    ratios
}

#[cfg(test)]
mod tests {
    use super::super::rows::{BAR, COLUMNS};
    use super::*;
    use crate::host::Host;
    use crate::report::Row;

    fn row(table: &str, way: Way, bytes: f64, pass: f64, us: f64, journal: Option<f64>) -> Row {
        let values = COLUMNS.iter().map(|column| match column.key {
            "sync" => Sync::Fdatasync.name().into(),
            "way" => way.name().into(),
            "record_bytes" => bytes.into(),
            "pass" => pass.into(),
            "median_us" => us.into(),
            "journal_writes" => journal.into(),
            _ => Value::NotMeasured,
        });
        Row::new(table, "", values.collect())
    }

    #[test]
    fn ratios_are_those_of_the_first_pass_over_pages() {
        let mut report = Report::new("write-modes", Host::default(), COLUMNS, BAR);
        report.rows = vec![
            row("xfs", Way::Append, 4096.0, 1.0, 1.0, Some(1.0)),
            row("ext4", Way::Append, 512.0, 1.0, 7.0, Some(9.0)),
            row("ext4", Way::Append, 4096.0, 2.0, 7.0, Some(9.0)),
            row("ext4", Way::Append, 4096.0, 1.0, 300.0, Some(2.5)),
            row("ext4", Way::Recycled, 4096.0, 1.0, 100.0, Some(0.0)),
        ];
        let expected = [
            ("recycled_vs_append_fdatasync_4k".to_owned(), 3.0),
            ("journal_writes_per_record_recycled_4k".to_owned(), 0.0),
            ("journal_writes_per_record_append_4k".to_owned(), 2.5),
        ];
        assert_eq!(of(&report, "ext4"), expected);
        report.rows[4] = row("ext4", Way::Recycled, 4096.0, 1.0, 100.0, None);
        assert_eq!(of(&report, "ext4").len(), 2, "what was not measured has no ratio");
    }
}
