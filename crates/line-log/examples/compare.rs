//! Compares a [`LineLog`] with the non-blocking writer of `tracing-appender`, in turn:
//! `cargo run --release -p haul-line-log --example compare -- DIR [ROUNDS]`.
//!
//! Both writers append the same lines of 64 to 128 bytes from one thread, lose no line, and write
//! into one file. A *burst* fits into the buffers of both writers, so it measures the cost for the
//! caller. A *flow* is longer, and ends when every line is written to the kernel.
//! `tracing-appender` is measured with a plain file, as its documentation shows it, and with a
//! `BufWriter` of 1 MiB around the file.
#![expect(clippy::print_stdout, reason = "prints a report")]

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use haul_line_log::{CURRENT, Environment, LineLog, Options, Retention};
use tracing_appender::non_blocking::NonBlockingBuilder;

const BURST_LINES: usize = 50_000;
const FLOW_LINES: usize = 2_000_000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The time until the last line was accepted, and until it was written to the kernel.
#[derive(Clone, Copy)]
struct Times {
    accepted: Duration,
    written: Duration,
}

/// Generates 4,096 different lines of 64 to 128 bytes, newline included.
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
    let keep = Retention { files_max: None, ..Retention::default() };
    let options = Options { file_bytes_max: None, keep, ..Options::default() };
    let log = LineLog::open(dir, options, Environment::default())?;
    let began = Instant::now();
    each(lines, count, |line| Ok(log.append(line)?))?;
    let accepted = began.elapsed();
    log.write_out()?;
    Ok(Times { accepted, written: began.elapsed() })
}

/// A writer that counts the bytes written to the inner writer.
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
    let accepted = began.elapsed();
    // Dropping the guard of `tracing-appender` waits for at most a second, which may be too short.
    while written.load(Ordering::Acquire) < bytes as u64 {
        std::thread::sleep(Duration::from_micros(50));
    }
    let times = Times { accepted, written: began.elapsed() };
    drop(guard);
    Ok(times)
}

/// Returns the minimum, the median and the maximum.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

fn report(name: &str, values: Vec<f64>, unit: &str) -> f64 {
    let (min, median, max) = spread(values);
    println!("{name:52} {median:10.2} {unit}   ({min:.2} to {max:.2})");
    median
}

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).ok_or("usage: compare DIR [ROUNDS]")?;
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
                    return Err(format!("{} wrote different bytes", names[index]).into());
                }
                found.push(times);
            }
        }
    }
    let ns = |times: &Times| times.accepted.as_nanos() as f64 / BURST_LINES as f64;
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
