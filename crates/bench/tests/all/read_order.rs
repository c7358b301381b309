//! Orders of reading, on a simulated disk: what the counters of the drive say.

use haul_bench::read_order::{Drive, Options, run};
use haul_bench::{Error, Report, Row, Silent, Value};
use haul_test_image::skip;

fn number(report: &Report, row: &Row, key: &str) -> f64 {
    let value = report.value(row, key).and_then(Value::number);
    value.unwrap_or_else(|| panic!("no {key} in {row:?}"))
}

/// All orders by one thread on a small tree; `None` where there is no simulated disk.
fn report(replacements: usize) -> Option<Report> {
    let options = Options {
        drives: Drive::all()[..1].to_vec(),
        files: 400,
        dirs: 20,
        replacements,
        threads: vec![1],
        rounds: 1,
        time_scale: 0.0,
        disk_bytes: 4 << 30,
        ..Options::default()
    };
    match run(&options, &Silent) {
        Ok(report) => Some(report),
        Err(Error::Missing(why)) => {
            skip(&why);
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

#[test]
fn in_the_order_of_the_disk_the_arm_moves_far_less_than_in_any_other() {
    let Some(report) = report(6) else { return };
    let [unsorted, inode, physical] = &report.rows[..] else { panic!("{:?}", report.rows) };
    println!("{}", report.table(200));
    for key in ["service_s", "travel_cylinders", "seeks"] {
        let of = |row| number(&report, row, key);
        assert!(of(physical) < of(inode) / 2.0 && of(physical) < of(unsorted) / 2.0, "{key}");
        // What a directory gives first is by chance, anew for each file system.
        assert!(of(inode) < of(unsorted) * 1.3, "{key}");
    }
    // The same files, whatever the order: the same bytes but for metadata.
    let bytes = |row| number(&report, row, "read_bytes");
    assert!((bytes(unsorted) / bytes(physical) - 1.0).abs() < 0.2);
}

#[test]
fn a_fresh_tree_takes_less_of_the_arm_than_an_old_one_unless_read_in_the_order_of_the_disk() {
    let (Some(fresh), Some(old)) = (report(0), report(6)) else { return };
    println!("{}", fresh.table(200));
    for (fresh_row, old_row) in fresh.rows.iter().zip(&old.rows).take(2) {
        let of = |report, row| number(report, row, "travel_cylinders");
        assert!(of(&fresh, fresh_row) < of(&old, old_row), "{fresh_row:?}, {old_row:?}");
    }
    assert!(fresh.ratios["physical_vs_unsorted"] > 1.0, "{:?}", fresh.ratios);
}
