//! The benchmark `power-cuts`: the records that survive, which the simulated drive determines.

use clap::Parser;
use haul_bench::power_cuts::{FileSystem, PowerCutsBench};
use haul_bench::{Benchmark, Error, Report, Row, Silent, Value};
use haul_testing::skip;

/// Cuts the power of a drive that writes each block of a file system whole. With smaller sectors, a
/// cut may tear the superblock, and then no mount succeeds: see docs/power-cuts.md.
fn report(file_systems: Vec<FileSystem>) -> Option<Report> {
    let defaults = PowerCutsBench::parse_from(["haul", "--cuts=3", "--physical-sector=4KiB"]);
    let bench = PowerCutsBench { file_systems, ..defaults };
    match bench.run(&Silent) {
        Ok(report) => Some(report),
        Err(Error::Missing(why)) => {
            skip(&why);
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

fn number(report: &Report, row: &Row, key: &str) -> f64 {
    report.value(row, key).and_then(Value::number).unwrap()
}

#[test]
fn synced_records_survive_without_a_journal_but_the_file_system_needs_a_repair() {
    use FileSystem::{Ext4, Ext4NoJournal, Ext4NoJournalUnchecked};
    let Some(report) = report(vec![Ext4, Ext4NoJournal, Ext4NoJournalUnchecked]) else { return };
    assert_eq!(report.rows.len(), 3 * 3 * 2);
    let mut unsynced_holes = 0.0;
    for row in &report.rows {
        let of = |key| number(&report, row, key);
        let is = |key, text: &str| report.value(row, key) == Some(&Value::from(text));
        assert_eq!((of("cuts"), of("lost_records")), (3.0, 0.0), "{row:?}");
        let is_repaired = of("repaired") > 0.0;
        assert_eq!(is_repaired, row.table == Ext4NoJournal.name(), "{row:?}");
        let is_synced = is("synced", "each record");
        if is_synced {
            assert!(of("durable_records") > 0.0 && of("holes") == 0.0, "{row:?}");
        } else if is("prepared", "filled") {
            unsynced_holes += of("holes");
        }
        let is_unusable = of("unusable") > 0.0;
        if row.table != Ext4NoJournalUnchecked.name() {
            assert!(!is_unusable, "{row:?}: {:?}", report.notes);
        } else if is_synced {
            assert!(is_unusable, "{row:?}");
        }
    }
    assert!(unsynced_holes > 0.0, "writes in place have no order");
}
