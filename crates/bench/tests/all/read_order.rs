//! The benchmark `read-order`: compares seeks and requests by the counters of a simulated drive.

use haul_bench::Report;
use haul_bench::read_order::ReadOrderBench;

use crate::reports::{self, number};

fn report(replacements: usize) -> Option<Report> {
    let line =
        "--drive travelstar-7k320 --files 400 --dirs 20 --threads 1 --rounds 1 --disk-size 4GiB";
    reports::report::<ReadOrderBench>(&format!("{line} --replacements {replacements}"), false)
}

#[test]
fn physical_order_moves_the_arm_far_less() {
    let Some(report) = report(6) else { return };
    let [unsorted, inode, physical] = &report.rows[..] else { panic!("{:?}", report.rows) };
    println!("{}", report.table(200));
    for key in ["service_s", "travel_cylinders", "seeks"] {
        let of = |row| number(&report, row, key);
        assert!(of(physical) < of(inode) / 2.0 && of(physical) < of(unsorted) / 2.0, "{key}");
        // The order of directory entries depends on a hash seed of the file system, so unsorted
        // reads differ between file systems.
        assert!(of(inode) < of(unsorted) * 1.3, "{key}");
    }
    // All orders read the same data, and nearly the same metadata.
    let bytes = |row| number(&report, row, "read_bytes");
    assert!((bytes(unsorted) / bytes(physical) - 1.0).abs() < 0.2);
}

#[test]
fn fresh_tree_moves_the_arm_less_than_an_aged_one() {
    let (Some(fresh), Some(old)) = (report(0), report(6)) else { return };
    println!("{}", fresh.table(200));
    for (fresh_row, old_row) in fresh.rows.iter().zip(&old.rows).take(2) {
        let of = |report, row| number(report, row, "travel_cylinders");
        assert!(of(&fresh, fresh_row) < of(&old, old_row), "{fresh_row:?}, {old_row:?}");
    }
    assert!(fresh.ratios["physical_vs_unsorted"].value > 1.0, "{:?}", fresh.ratios);
}
