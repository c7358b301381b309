//! Tests that lines are read back by their times.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul_disk::{Disk, Open, OsDisk, write_full};
use haul_disk_sim::MemoryDisk;
use haul_line_log::{
    CURRENT, Compression, CopyReport, Environment, LineLog, Options, StampFormat, Stamper,
    TimeRange, copy_lines, copy_lines_on,
};
use haul_testing::disk_dir;

use crate::{TestClock, all, closed, open_on, read_all, small};

/// The time of line 0, in seconds.
const BEGIN: u64 = 1_795_245_000;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(BEGIN + seconds)
}

/// Writes one line of 50 to 100 bytes each second, in files of 4 KiB.
fn write(disk: &MemoryDisk, clock: &Arc<TestClock>, lines: u64, stamps: Option<StampFormat>) {
    let environment = Environment {
        clock: Arc::clone(clock) as Arc<dyn haul_line_log::Clock>,
        ..Environment::default()
    };
    let compress = Some(Compression::ZSTD);
    let options = Options { compress, ..small() };
    let log = LineLog::open_on(Arc::new(disk.clone()), options, environment).unwrap();
    let mut stamper = stamps.map(Stamper::new);
    for number in 0..lines {
        clock.set_seconds(BEGIN + number);
        let bytes = 50 + usize::try_from(number * 7 % 50).unwrap();
        let line = format!("{number:08} {:.<bytes$}\n", "");
        match &mut stamper {
            Some(stamper) => log.append(stamper.stamp(line.as_bytes(), at(number))).unwrap(),
            None => log.append(line.as_bytes()).unwrap(),
        }
        log.write_out().unwrap();
    }
    log.wait_for_compression();
    clock.modified_us.store((BEGIN + lines - 1) * 1_000_000, Ordering::SeqCst);
}

fn read(
    disk: &dyn Disk,
    clock: &TestClock,
    since: Option<u64>,
    until: Option<u64>,
) -> (String, CopyReport) {
    let range = TimeRange { since: since.map(at), until: until.map(at) };
    let mut text = Vec::new();
    let mut sink = |_file: &str, lines: &[u8]| {
        text.extend_from_slice(lines);
        true
    };
    let report = copy_lines_on(disk, range, clock, &mut sink).unwrap();
    assert_eq!(report.bytes, text.len() as u64);
    (String::from_utf8(text).unwrap(), report)
}

/// Replaces the compressed files by plain ones.
fn decompress(disk: &MemoryDisk) {
    for name in closed(disk).into_iter().filter(|name| name.ends_with(".zst")) {
        let bytes = zstd::decode_all(&*crate::text(disk, &name)).unwrap();
        let plain = disk.create(name.trim_end_matches(".zst"), Open::default()).unwrap();
        write_full(&*plain, &bytes, 0).unwrap();
        disk.remove(&name).unwrap();
    }
}

#[test]
fn lines_of_a_time_are_found_in_plain_and_compressed_files() {
    for stamps in [StampFormat::Utc, StampFormat::Unix, StampFormat::Tai64n] {
        let (disk, clock) = (MemoryDisk::default(), Arc::new(TestClock::default()));
        write(&disk, &clock, 200, Some(stamps));
        assert!(closed(&disk).len() > 3 && closed(&disk)[0].ends_with(".zst"));
        let everything = String::from_utf8(all(&disk)).unwrap();
        let lines: Vec<&str> = everything.split_inclusive('\n').collect();
        for _ in ["compressed", "plain"] {
            assert_eq!(read(&disk, &clock, None, None).0, everything);
            for since in 0..210 {
                let first = usize::try_from(since).unwrap().min(200);
                let (text, report) = read(&disk, &clock, Some(since), None);
                assert_eq!(text, lines[first..].concat(), "since {since}");
                assert_eq!(report.files_without_timestamps, 0);
                for more in [0, 1, 30, 90] {
                    let last = (first + usize::try_from(more).unwrap()).min(200);
                    let (text, _) = read(&disk, &clock, Some(since), Some(since + more));
                    assert_eq!(text, lines[first..last].concat(), "{since} + {more}");
                }
                let (text, _) = read(&disk, &clock, None, Some(since));
                assert_eq!(text, lines[..first].concat(), "until {since}");
            }
            decompress(&disk);
        }
    }
}

#[test]
fn files_without_timestamps_are_selected_by_their_times() {
    let (disk, clock) = (MemoryDisk::default(), Arc::new(TestClock::default()));
    write(&disk, &clock, 200, None);
    let contents: Vec<String> =
        crate::files(&disk).into_iter().map(|file| String::from_utf8(file).unwrap()).collect();
    let files = contents.len();
    // The number of a line is the time at which it was written; the first line of the next file
    // closed the file.
    let ends: Vec<u64> =
        contents[1..].iter().map(|file| file[..8].parse().unwrap()).chain([199]).collect();
    for (number, end) in ends.iter().enumerate() {
        let (text, report) = read(&disk, &clock, Some(*end), None);
        assert_eq!(text, contents[number..].concat(), "since {end}");
        assert_eq!(report.files_without_timestamps, (files - number) as u64);
        let (text, report) = read(&disk, &clock, Some(*end), Some(*end + 1));
        assert_eq!(text, contents[number..(number + 2).min(files)].concat());
        assert_eq!(report.files, report.files_without_timestamps);
    }
    assert_eq!(read(&disk, &clock, Some(201), None).0, "");
}

#[test]
fn only_files_of_the_range_are_read() {
    let (disk, clock) = (MemoryDisk::default(), Arc::new(TestClock::default()));
    write(&disk, &clock, 400, Some(StampFormat::Utc));
    let files = closed(&disk);
    // A damaged file before the range is not read.
    let name = files[0].clone();
    disk.rot(&name, 20, 3);
    let (text, report) = read(&disk, &clock, Some(300), None);
    assert!(text.contains("\n00000300") || text.contains(" 00000300 "), "{text}");
    assert!(report.failures.is_empty() && report.files < files.len() as u64 / 2, "{report:?}");
    // A damaged file of the range is reported, and all other files are read.
    let (text, report) = read(&disk, &clock, None, None);
    assert!(report.failures.len() == 1 && text.contains(" 00000399 "), "{report:?}");
    assert!(report.failures[0].to_string().contains(&name), "{report:?}");
}

#[test]
fn long_plain_file_is_searched_by_few_reads() {
    let dir = disk_dir();
    let mut text = String::new();
    for number in 0..200_000 {
        let seconds = BEGIN + number / 10;
        text += &format!("{seconds}.{:06} a line\n", number % 10 * 100_000);
        if number % 1000 == 0 {
            text += &"a line without a timestamp\n".repeat(3000);
        }
    }
    std::fs::write(dir.path().join(CURRENT), &text).unwrap();
    for seconds in [0, 1, 9_999, 12_345, 19_999] {
        let mut found = Vec::new();
        let range = TimeRange { since: Some(at(seconds)), until: None };
        let mut sink = |_file: &str, lines: &[u8]| {
            found.extend_from_slice(lines);
            found.len() < 1000
        };
        let report = copy_lines(dir.path(), range, &mut sink).unwrap();
        assert_eq!(report.files, 1);
        let first = text.find(&format!("{}.000000 ", BEGIN + seconds)).unwrap();
        assert!(text.as_bytes()[first..].starts_with(&found), "{seconds}");
    }
}

#[test]
fn reading_takes_no_lock_and_changes_nothing() {
    let dir = disk_dir();
    let log = crate::open(dir.path(), small());
    (0..100).for_each(|number| log.append(&crate::line(number, 100)).unwrap());
    log.write_out().unwrap();
    let disk = OsDisk::open(dir.path()).unwrap();
    let before = disk.list("").unwrap();
    let mut text = Vec::new();
    let report = read_all(&disk, &mut text);
    assert_eq!((text.len(), report.files, report.files_listed), (10_000, 3, 3));
    assert_eq!(disk.list("").unwrap(), before);
    let missing = copy_lines(dir.path().join("no log"), TimeRange::default(), &mut |_, _| true);
    assert!(missing.is_err() && !dir.path().join("no log").exists());
}

#[test]
fn each_line_is_read_once_while_the_log_is_written() {
    let disk = MemoryDisk::default();
    let options = Options { compress: Some(Compression::ZSTD), ..small() };
    let log = open_on(&disk, options);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..3000 {
                log.append(&crate::line(number, 100)).unwrap();
                log.write_out().unwrap();
            }
        });
        let mut reads = 0;
        while !writer.is_finished() || reads == 0 {
            let mut text = Vec::new();
            let report = read_all(&disk, &mut text);
            assert!(report.removed.is_empty() && report.failures.is_empty(), "{report:?}");
            let found = crate::numbers(&text);
            assert_eq!(found, (0..found.len() as u64).collect::<Vec<_>>());
            reads += 1;
        }
    });
    log.close().unwrap();
}
