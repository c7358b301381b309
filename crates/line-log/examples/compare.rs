//! The same lines through a [`LineLog`] and through the non-blocking writer of `tracing-appender`,
//! in turn: `cargo run --release -p haul-line-log --example compare -- DIR [ROUNDS]`.
//!
//! Both take lines of 64 to 128 bytes of one thread, lose none, and write them into one file. A
//! *burst* fits into the memory of both, so it shows what a caller pays; the *flow* goes on until
//! every line was handed to the kernel. `tracing-appender` is measured as its documentation shows
//! it, with a file below, and with a `BufWriter` of a mebibyte between them.
#![expect(clippy::print_stdout, reason = "it is a report")]

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use haul_line_log::{CURRENT, Keep, LineLog, Options, Outside};
use tracing_appender::non_blocking::NonBlockingBuilder;

const BURST_LINES: usize = 50_000;
const FLOW_LINES: usize = 2_000_000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Time until the last line was taken in, and until the last one was with the kernel.
#[derive(Clone, Copy)]
struct Times {
    taken: Duration,
    written: Duration,
}

/// Lines of 64 to 128 bytes, newline included; a few thousand different ones.
fn lines() -> Vec<Vec<u8>> {
    let line = |number: usize| {
        let mut line = format!("2026-11-21T07:23:14.500Z  INFO request{{id={number}}}: answered ");
        let bytes = 64 + number * 31 % 65;
        line.truncate(bytes - 1);
        line.extend(std::iter::repeat_n('.', bytes - 1 - line.len()));
        line.push('\n');
        line.into_bytes()
    };
    (0..4096).map(line).collect()
}

fn each(
    lines: &[Vec<u8>],
    count: usize,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<()> {
    for line in lines.iter().cycle().take(count) {
        take(line)?;
    }
    Ok(())
}

fn line_log(dir: &Path, lines: &[Vec<u8>], count: usize) -> Result<Times> {
    let keep = Keep { files_max: None, ..Keep::default() };
    let options = Options { file_bytes_max: None, keep, ..Options::default() };
    let log = LineLog::open(dir, options, Outside::default())?;
    let began = Instant::now();
    each(lines, count, |line| Ok(log.append(line)?))?;
    let taken = began.elapsed();
    log.write_out()?;
    Ok(Times { taken, written: began.elapsed() })
}

/// Counts what the file below took.
struct Counted<W>(W, Arc<AtomicU64>);

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        self.1.fetch_add(written as u64, Ordering::Release);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn appender(dir: &Path, lines: &[Vec<u8>], count: usize, is_buffered: bool) -> Result<Times> {
    fs::create_dir(dir)?;
    let written = Arc::new(AtomicU64::new(0));
    let file = Counted(File::create(dir.join(CURRENT))?, Arc::clone(&written));
    let builder = NonBlockingBuilder::default().lossy(false);
    let (mut writer, guard) = if is_buffered {
        builder.finish(BufWriter::with_capacity(1 << 20, file))
    } else {
        builder.finish(file)
    };
    let bytes: usize = lines.iter().cycle().take(count).map(Vec::len).sum();
    let began = Instant::now();
    each(lines, count, |line| writer.write_all(line))?;
    let taken = began.elapsed();
    // Its guard waits a second at most, which may be too short; so it is waited for here.
    while written.load(Ordering::Acquire) < bytes as u64 {
        std::thread::sleep(Duration::from_micros(50));
    }
    let times = Times { taken, written: began.elapsed() };
    drop(guard);
    Ok(times)
}

/// The smallest, the middle and the largest.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

fn report(what: &str, values: Vec<f64>, unit: &str) -> f64 {
    let (min, median, max) = spread(values);
    println!("{what:52} {median:10.2} {unit}   ({min:.2} to {max:.2})");
    median
}

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).ok_or("name a directory to write in")?;
    let rounds: usize = std::env::args().nth(2).map_or(Ok(7), |rounds| rounds.parse())?;
    let (lines, work) = (lines(), Path::new(&dir).join("compare"));
    let names = ["line-log", "tracing-appender", "tracing-appender, BufWriter"];
    let mut bursts = vec![Vec::new(); names.len()];
    let mut flows = vec![Vec::new(); names.len()];
    for _ in 0..rounds {
        for (count, found) in [(BURST_LINES, &mut bursts), (FLOW_LINES, &mut flows)] {
            let mut first = None;
            for (index, found) in found.iter_mut().enumerate() {
                let times = match index {
                    0 => line_log(&work, &lines, count)?,
                    _ => appender(&work, &lines, count, index == 2)?,
                };
                let text = fs::read(work.join(CURRENT))?;
                fs::remove_dir_all(&work)?;
                let first = first.get_or_insert_with(|| text.clone());
                if *first != text {
                    return Err(format!("{} wrote something else", names[index]).into());
                }
                found.push(times);
            }
        }
    }
    let ns = |times: &Times| times.taken.as_nanos() as f64 / BURST_LINES as f64;
    let rate = |times: &Times| FLOW_LINES as f64 / times.written.as_secs_f64() / 1e6;
    let mut rates = Vec::new();
    for (index, name) in names.iter().enumerate() {
        report(&format!("{name}: a line of a burst"), bursts[index].iter().map(ns).collect(), "ns");
        let found = flows[index].iter().map(rate).collect();
        rates.push(report(&format!("{name}: flow"), found, "million lines/s"));
    }
    let ratio = |other: usize| {
        let pairs = flows[0].iter().zip(&flows[other]);
        pairs.map(|(ours, theirs)| rate(ours) / rate(theirs)).collect()
    };
    report("line_log_vs_tracing_appender", ratio(1), "times");
    report("line_log_vs_tracing_appender, BufWriter", ratio(2), "times");
    Ok(())
}
