//! Tests that concurrent appends write every line once, complete, and in order per thread.

use std::thread;

use haul_disk::OsDisk;
use haul_line_log::{Options, WhenFull};
use haul_testing::Random;

use crate::{disk_dir, files, open, small};

const THREADS: usize = 6;

/// Returns line `number` of `thread`: mostly short, sometimes longer than a buffer and a file.
fn line(thread: u64, number: u64) -> Vec<u8> {
    let mut random = Random(thread << 32 | number);
    let bytes = match random.below(200) {
        0 => 2000 + random.below(9000),
        1..20 => 200 + random.below(1500),
        _ => random.below(120),
    };
    let mut line = format!("{thread} {number} {bytes} ").into_bytes();
    let fill = b'a' + u8::try_from(random.below(26)).unwrap();
    line.resize(line.len() + usize::try_from(bytes).unwrap(), fill);
    line.push(b'\n');
    line
}

/// Appends `lines` lines per thread, one to three per call. Returns the files.
fn run(options: Options, lines: u64) -> Vec<Vec<u8>> {
    let dir = disk_dir();
    let log = open(dir.path(), options);
    thread::scope(|scope| {
        for thread in 0..THREADS as u64 {
            let log = &log;
            scope.spawn(move || {
                let mut random = Random(thread);
                let mut number = 0;
                while number < lines {
                    let count = 1 + random.below(3);
                    let next = (number + count).min(lines);
                    let bytes: Vec<u8> = (number..next).flat_map(|n| line(thread, n)).collect();
                    log.append(&bytes).unwrap();
                    match random.below(500) {
                        0 => log.write_out().unwrap(),
                        1 => log.rotate().unwrap(),
                        2 => log.sync().unwrap(),
                        _ => {}
                    }
                    number = next;
                }
            });
        }
    });
    log.close().unwrap();
    let stats = log.stats();
    assert_eq!((stats.memory_bytes, stats.dropped_lines), (0, 0));
    let files = files(&OsDisk::open(dir.path()).unwrap());
    assert_eq!(stats.written_bytes, files.iter().map(|file| file.len() as u64).sum::<u64>());
    assert_eq!(stats.rotations + 1, files.len() as u64);
    files
}

fn check(text: &[u8], lines: u64) {
    let mut next = [0; THREADS];
    for found in text.split_inclusive(|byte| *byte == b'\n') {
        let words = str::from_utf8(found).unwrap();
        let mut words = words.split(' ').map(|word| word.parse::<u64>());
        let (thread, number) = (words.next().unwrap().unwrap(), words.next().unwrap().unwrap());
        let expected = &mut next[usize::try_from(thread).unwrap()];
        assert_eq!(number, *expected, "thread {thread}");
        assert!(found == line(thread, number), "line {number} of thread {thread} is not whole");
        *expected += 1;
    }
    assert_eq!(next, [lines; THREADS]);
}

#[test]
fn concurrent_lines_are_whole_unique_and_in_order() {
    check(&run(small(), 3000).concat(), 3000);
    let wide = Options { buffers: 5, buffer_bytes: 16 << 10, ..small() };
    check(&run(wide, 3000).concat(), 3000);
}

#[test]
fn drop_newest_drops_no_line_with_enough_memory() {
    let options =
        Options { when_full: WhenFull::DropNewest, buffers: 64, buffer_bytes: 1 << 20, ..small() };
    check(&run(options, 2000).concat(), 2000);
}

#[test]
fn lines_shorter_than_a_file_are_not_split() {
    // The maximum length of a file is greater than the length of every line.
    let options = Options { file_bytes_max: Some(12_000), ..small() };
    let files = run(Options { buffer_bytes: 64 << 10, ..options }, 2000);
    assert!(files.len() > 30, "{}", files.len());
    assert!(files.iter().all(|file| file.is_empty() || file.ends_with(b"\n")));
    check(&files.concat(), 2000);
}
