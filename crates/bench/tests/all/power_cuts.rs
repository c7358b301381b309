//! The benchmark `power-cuts`: the records that survive, which the simulated drive determines.

use haul_bench::Value;
use haul_bench::power_cuts::{FileSystem, PowerCutsBench};

use crate::reports::{number, report};

#[test]
fn synced_records_survive_without_a_journal_but_the_file_system_needs_a_repair() {
    use FileSystem::{Ext4NoJournal, Ext4NoJournalUnchecked};
    let line = "--cuts 3 --physical-sector 4KiB \
                --file-systems ext4,ext4-nojournal,ext4-nojournal-unchecked";
    let Some(report) = report::<PowerCutsBench>(line, false) else { return };
    assert_eq!(report.rows.len(), 3 * 3 * 2);
    let mut unsynced_holes = 0.0;
    for row in &report.rows {
        let of = |key| number(&report, row, key);
        let is = |key, text: &str| report.value(row, key) == Some(&Value::from(text));
        assert_eq!(of("cuts"), 3.0, "{row:?}");
        // Without a journal, some kernels do not write the inode of a file that grows, if it was
        // already copied to its block: see docs/power-cuts.md.
        let is_safe = !row.table.starts_with(Ext4NoJournal.name()) || !is("prepared", "append");
        assert!(!is_safe || of("lost_records") == 0.0, "{row:?}");
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
