//! Experiments on real disks, in memory and between sockets, and presets.

use clap::Parser;
use haul_bench::seed::{
    crossover, direct, fiemap, fill, gain, journal, prefault, pwrite, readahead, splice, stall,
    stdio, threads, trace, writeback,
};
use haul_bench::{Error, Silent, Value};
use haul_testing::skip;

use super::{finished, limits, number, options, rows};
use crate::disk_dir;

#[test]
fn each_record_of_fill_is_one_write_and_journaled_unless_written_before() {
    let dir = disk_dir();
    let line = "--bytes 64KiB --synced-bytes 32KiB --rounds 5 --virtual-disk ext4,ext4-nojournal";
    let options = options(&dir, line);
    let Some(report) = finished(&dir, fill::run(&options, &Silent)) else { return };
    assert_eq!(report.rows.len(), 2 * 4 * 5 * 2);
    for sync in ["fdatasync", "fsync", "open-datasync", "open-sync"] {
        for way in ["append", "fallocate", "zero-range", "filled"] {
            let rows = rows(&report, &[("sync", sync), ("way", way)]);
            let [first, _, without_journal, _] = rows[..] else { panic!("{rows:?}") };
            for row in &rows {
                assert_eq!(number(&report, row, "records"), 8.0, "{row:?}");
                assert_eq!(number(&report, row, "data_writes"), 1.0, "{row:?}");
                assert!(number(&report, row, "device_syncs") >= 1.0, "{row:?}");
            }
            let journal = |row| number(&report, row, "journal_writes");
            assert_eq!(journal(without_journal), 0.0, "{without_journal:?}");
            if way != "filled" {
                assert!(journal(first) >= 1.0, "{first:?}");
                assert_eq!(number(&report, without_journal, "metadata_writes"), 1.0);
            } else if sync == "fdatasync" || sync == "open-datasync" {
                assert_eq!(journal(first), 0.0, "{first:?}");
            }
        }
    }
    for row in rows(&report, &[("sync", "none")]) {
        assert_eq!(number(&report, row, "records"), 16.0, "{row:?}");
        assert_eq!(number(&report, row, "device_syncs"), 0.0, "{row:?}");
    }
    assert!(report.ratios.contains_key("nojournal_vs_journal_zero_range_fsync"));
    assert!(report.notes.iter().any(|note| note.contains("1.78")), "{:?}", report.notes);
}

#[test]
fn records_of_512_bytes_commit_each_reserved_block_once() {
    let dir = disk_dir();
    let line = "--record 512 --bytes 8KiB --rounds 5 --virtual-disk ext4";
    let options = options(&dir, line);
    let Some(report) = finished(&dir, fill::run(&options, &Silent)) else { return };
    let journal = |way: &str| -> Vec<_> {
        let rows = rows(&report, &[("sync", "fdatasync"), ("way", way)]);
        rows.into_iter().map(|row| number(&report, row, "journal_writes")).collect()
    };
    // A commit is two writes; a block has eight records.
    assert_eq!((journal("append"), journal("fallocate")), (vec![2.0, 0.0], vec![0.25, 0.0]));
    assert_eq!(journal("filled"), [0.0, 0.0]);
}

#[test]
fn data_journal_receives_the_data_too() {
    let dir = disk_dir();
    let line = "--bytes 32KiB --rounds 1 --virtual-disk ext4-ordered,ext4-writeback,ext4-journal";
    let options = options(&dir, line);
    let Some(report) = finished(&dir, fill::run(&options, &Silent)) else { return };
    let first = |table: &str| {
        let all = rows(&report, &[("sync", "fdatasync"), ("way", "append")]);
        let row = all.into_iter().find(|row| row.table == table).unwrap();
        number(&report, row, "journal_bytes")
    };
    assert!(first("ext4-journal") > first("ext4-ordered").max(first("ext4-writeback")));
    assert!(first("ext4-writeback") >= 8192.0);
}

#[test]
fn protected_write_cache_gets_no_sync() {
    let dir = disk_dir();
    let line = "--bytes 16KiB --rounds 1 --virtual-disk ext4 --protected-cache";
    let options = options(&dir, line);
    let Some(report) = finished(&dir, fill::run(&options, &Silent)) else { return };
    for row in &report.rows {
        assert_eq!(number(&report, row, "device_syncs"), 0.0, "{row:?}");
    }
    assert!(report.rows.iter().any(|row| number(&report, row, "journal_writes") >= 1.0));
}

#[test]
fn trace_of_fill_shows_the_journal_of_a_growing_file() {
    let (dir, outside) = (disk_dir(), tempfile::tempdir().unwrap());
    let lines = outside.path().join("lines");
    let line = "--virtual-disk ext4 --sync fdatasync";
    let options = trace::Options { trace: Some(lines.clone()), ..options(&dir, line) };
    let Some(report) = finished(&dir, trace::run(&options, &Silent)) else { return };
    let of = |name: &str| report.ratios[name].value;
    assert!(of("append_journal_writes") >= 1.0 && of("fallocate_journal_writes") >= 1.0);
    assert!(of("append_journal_bytes") > of("fallocate_journal_bytes"));
    assert_eq!(
        [of("filled_writes"), of("filled_journal_writes"), of("filled_syncs")],
        [1.0, 0.0, 1.0]
    );
    let filled = report.rows.iter().filter(|row| row.table == "filled, fdatasync");
    let issued = filled.filter(|row| row.values[1] == Value::from("D issue"));
    assert_eq!(issued.map(|row| row.values[5].number().unwrap()).sum::<f64>(), 4096.0);
    let text = std::fs::read_to_string(lines).unwrap();
    assert!(text.contains("jbd2/") && text.contains("block_rq_complete:"), "{text}");
}

#[test]
fn readahead_windows_grow_to_the_maximum_of_the_device() {
    let dir = disk_dir();
    let line = "--read-ahead-kb 128 --sizes 4KiB --file-size 32MiB";
    let options = options(&dir, line);
    let Some(report) = finished(&dir, readahead::run(&options, &Silent)) else { return };
    let [sequential, interrupted, random] = &report.rows[..] else { panic!("{:?}", report.rows) };
    let of = |row, key| number(&report, row, key);
    assert_eq!(of(sequential, "largest_kib"), 128.0);
    assert!(of(sequential, "first_kib") < of(sequential, "next_kib"));
    assert!(of(sequential, "next_kib") < 128.0);
    // One random read does not end the readahead of the sequential reads.
    assert_eq!(of(interrupted, "after_kib"), 128.0);
    assert_eq!([of(random, "first_kib"), of(random, "largest_kib")], [4.0, 4.0]);
}

#[test]
fn buffered_writes_and_reads_make_one_system_call_per_buffer() {
    let dir = disk_dir();
    let options = options(&dir, "--sizes 16,1KiB --file-size 1MiB --rounds 1");
    let report = finished(&dir, stdio::run(&options, &Silent)).unwrap();
    let calls = |way: &str| -> Vec<_> {
        let rows = rows(&report, &[("way", way)]);
        rows.into_iter().map(|row| number(&report, row, "calls_per_mib")).collect()
    };
    for way in ["write", "read"] {
        assert_eq!(calls(way), [65536.0, 1024.0]);
        assert_eq!(calls(&format!("{way}, buffered")), [256.0, 256.0]);
    }
    assert!(report.ratios["buffered_vs_write_16"].value > 1.0);
}

#[test]
fn memory_touched_before_causes_no_faults() {
    let dir = disk_dir();
    let options = options(&dir, "--size 64MiB --rounds 1");
    let report = finished(&dir, prefault::run(&options, &Silent)).unwrap();
    let faults = |memory: &str| -> Vec<_> {
        let rows = rows(&report, &[("memory", memory)]);
        rows.into_iter().map(|row| number(&report, row, "faults_per_mib")).collect()
    };
    // A MiB has 256 pages; a fault maps one of them, or a huge page of 2 MiB.
    assert!(faults("fresh").iter().all(|faults| *faults >= 0.5), "{:?}", faults("fresh"));
    let touched = faults("touched before");
    assert!(touched.iter().zip(faults("fresh")).all(|(touched, fresh)| *touched < fresh / 4.0));
}

#[test]
fn writers_of_one_file_and_of_many_are_measured() {
    let dir = disk_dir();
    let options = options(&dir, "--threads 1,3 --rounds 1 --seconds 30ms");
    let report = finished(&dir, pwrite::run(&options, &Silent)).unwrap();
    assert_eq!(report.rows.len(), 2 * 3);
    for row in &report.rows {
        assert!(number(&report, row, "calls") > 0.0, "{row:?}");
    }
    assert!(report.ratios["own_vs_one_file_3"].value > 0.0);
}

#[test]
fn missing_space_is_reported_before_anything_is_written() {
    let dir = disk_dir();
    let options = options(&dir, "--bytes 1TiB");
    let Err(Error::Missing(why)) = fill::run(&options, &Silent) else { panic!("it started") };
    assert!(why.contains("free space") && why.contains("needs 2097152 MiB"), "{why}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "left behind");
}

#[test]
fn relayed_bodies_need_fewer_system_calls_through_a_reused_pipe() {
    let words = ["splice", "--sizes", "1KiB,256KiB", "--rounds", "1", "--seconds", "20ms"];
    let report = splice::run(&splice::Options::parse_from(words), &Silent).unwrap();
    let calls = |bytes: f64, way: &str| {
        let rows = rows(&report, &[("way", way)]);
        let row = rows.into_iter().find(|row| number(&report, row, "bytes") == bytes).unwrap();
        number(&report, row, "system_calls")
    };
    assert_eq!(calls(1024.0, "splice, a pipe per call"), 5.0);
    assert_eq!(calls(1024.0, "splice, reused pipe"), 2.0);
    assert_eq!(calls(262_144.0, "read + write, 1 KiB"), 512.0);
    let reused = calls(262_144.0, "splice, reused pipe");
    assert!((8.0..64.0).contains(&reused), "{reused}");
}

#[test]
fn each_file_has_a_position() {
    let dir = disk_dir();
    let options = options(&dir, "--files 40 --rounds 1");
    let report = finished(&dir, fiemap::run(&options, &Silent)).unwrap();
    let found: Vec<_> = report.rows.iter().map(|row| number(&report, row, "found")).collect();
    assert_eq!(found, [0.0, 40.0]);
}

#[test]
fn presets_run_with_small_sizes_and_leave_nothing_behind() {
    let _limits = limits();
    let dir = disk_dir();
    let threads = options(&dir, "--file-size 4MiB --rounds 1 --seconds 5ms");
    let report = finished(&dir, threads::run(&threads, &Silent)).unwrap();
    assert_eq!((report.bench.as_str(), report.rows.len()), ("seed threads", 2 * 5 * 4));
    if !rustix::process::geteuid().is_root() {
        return skip("limits of memory and of dirty pages need root");
    }
    let crossover = options(&dir, "--memory 64MiB --rounds 1 --seconds 5ms");
    if let Some(report) = finished(&dir, crossover::run(&crossover, &Silent)) {
        assert_eq!((report.bench.as_str(), report.rows.len()), ("seed crossover", 6 * 3));
    }
    let stall = options(&dir, "--bulk 4MiB --rounds 1 --dirty-limit 1GiB");
    let report = finished(&dir, stall::run(&stall, &Silent)).unwrap();
    let unpaced = rows(&report, &[("foreground", "overwrite"), ("bulk", "unpaced")]);
    assert!(number(&report, unpaced[0], "bulk_longest_ms") > 0.0);
}

#[test]
fn journal_costs_writes_only_in_new_blocks() {
    let dir = disk_dir();
    let options = options(&dir, "--records 8 --rounds 5");
    let Some(report) = finished(&dir, journal::run(&options, &Silent)) else { return };
    assert_eq!((report.rows.len(), report.ratios.len()), (2 * 2 * 2 * 2, 8));
    let journal = |disk: &str, pass: f64| {
        let texts = [("disk", disk), ("way", "zero-range"), ("sync", "fdatasync")];
        let rows = rows(&report, &texts);
        let row = rows.into_iter().find(|row| number(&report, row, "pass") == pass).unwrap();
        number(&report, row, "journal_writes")
    };
    let counts = [journal("ext4", 1.0), journal("ext4", 2.0), journal("ext4-nojournal", 1.0)];
    assert_eq!(counts, [2.0, 0.0, 0.0]);
}

#[test]
fn gains_of_writes_and_reads_are_measured_on_one_disk() {
    let dir = disk_dir();
    let options = options(&dir, "--file-size 8MiB --depth 4 --rounds 1 --seconds 200ms");
    let Some(report) = finished(&dir, gain::run(&options, &Silent)) else { return };
    let has_direct_io = report.rows.iter().all(|row| row.state.is_none());
    assert_eq!((report.rows.len(), report.ratios.len()), (8, if has_direct_io { 7 } else { 3 }));
    for row in report.rows.iter().filter(|row| row.state.is_none()) {
        assert!(number(&report, row, "operations") >= 1.0, "{row:?}");
    }
    // The file of 8 MiB is read whole through the page cache.
    let cached = rows(&report, &[("way", "sequential, 4 KiB, all cached")]);
    assert_eq!(number(&report, cached[0], "operations"), 2048.0);
}

#[test]
fn cached_reads_of_a_block_need_no_disk() {
    let dir = disk_dir();
    let options = options(&dir, "--rounds 5 --seconds 20ms");
    let Some(report) = finished(&dir, direct::run(&options, &Silent)) else { return };
    let value = |name: &str| report.ratios.get(name).map(|ratio| ratio.value);
    let Some(cached) = value("cached_disk_bytes_per_read") else {
        return skip("the kernel does not count the bytes that a thread reads");
    };
    assert_eq!(cached, 0.0);
    let direct = value("direct_disk_bytes_per_read");
    assert!(direct.is_none_or(|direct| direct == 4096.0), "{direct:?}");
    assert!(report.notes.iter().any(|note| note.contains("17.45")), "{:?}", report.notes);
}

#[test]
fn writeback_calls_write_many_pages_of_a_file() {
    let _limits = limits();
    let dir = disk_dir();
    let options = options(&dir, "--bytes 256MiB --rounds 1");
    let Some(report) = finished(&dir, writeback::run(&options, &Silent)) else { return };
    let [memory, background] = &report.rows[..] else { panic!("{:?}", report.rows) };
    for row in [memory, background] {
        assert!(number(&report, row, "works") >= 1.0, "{row:?}");
        // The kernel rounds the number of pages to a multiple of 1,024.
        assert_eq!(number(&report, row, "pages_allowed") % 1024.0, 0.0, "{row:?}");
        assert!(number(&report, row, "pages_longest") >= 1.0, "{row:?}");
    }
    // Other programs may call sync meanwhile.
    let reasons = report.value(background, "reasons");
    let names_it =
        |reasons: &Value| matches!(reasons, Value::Text(it) if it.contains("background"));
    assert!(reasons.is_some_and(names_it), "{reasons:?}");
}
