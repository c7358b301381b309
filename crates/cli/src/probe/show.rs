//! Formats the results of `haul probe` as text. The module does no I/O.

use std::fmt::Write;

use haul_measure::{BLOCK_BYTES, LONG_BYTES, LONG_DEPTH, Measured, Sample};
use haul_tuning::Choice;

use crate::units::{Bytes, Grouped};

/// The note that replaces the bar of a write method that is not durable: the rate of such a method
/// is not comparable with the others.
const NOT_DURABLE: &str = "not durable";
/// The length of the longest bar, in characters.
const BAR: usize = 24;

/// Formats the choices, each followed by its reason.
pub(super) fn choices(choices: &[Choice]) -> String {
    let mut text = "\nchoices of Haul\n".to_owned();
    for Choice { title, choice, reason, .. } in choices {
        writeln!(text, "  {title:<15} {choice}").ok();
        writeln!(text, "  {:<15}   {reason}", "").ok();
    }
    text
}

/// Formats the warnings, if any.
pub(super) fn warnings(warnings: &[String]) -> String {
    let mut text = String::new();
    if !warnings.is_empty() {
        text.push_str("\nwarnings\n");
    }
    for warning in warnings {
        writeln!(text, "  - {warning}").ok();
    }
    text
}

/// Formats the measurements.
pub(super) fn measured(measured: &Measured) -> String {
    let mut text = String::new();
    let block = Bytes(BLOCK_BYTES as u64);
    let rows: Vec<_> = measured
        .writes
        .iter()
        .map(|row| {
            let name = row.method.to_string();
            let note = if row.method.is_durable() { "" } else { NOT_DURABLE };
            (name, &row.sample, row.why_not.as_deref().unwrap_or(note))
        })
        .collect();
    table(&mut text, &format!("writes of {block}, one at a time"), &rows);
    if !measured.reads.is_empty() {
        let rows: Vec<_> = measured
            .reads
            .iter()
            .map(|row| {
                let note = if Some(row.depth) == measured.depth { "chosen" } else { "" };
                (format!("depth {}", row.depth), &row.sample, note)
            })
            .collect();
        table(&mut text, &format!("random reads of {block}, direct I/O"), &rows);
    }
    if let (Some(read), Some(write)) = (measured.read_bytes_per_s, measured.write_bytes_per_s) {
        writeln!(
            text,
            "\nsequential, direct I/O, {} requests, depth {LONG_DEPTH}: reads {}/s, writes {}/s",
            Bytes(LONG_BYTES as u64),
            Bytes(whole(read)),
            Bytes(whole(write)),
        )
        .ok();
    }
    for note in &measured.notes {
        writeln!(text, "\n{note}").ok();
    }
    text
}

fn table(text: &mut String, head: &str, rows: &[(String, &Sample, &str)]) {
    let durable = rows.iter().filter(|(_, _, note)| *note != NOT_DURABLE);
    let rates = durable.filter_map(|(_, sample, _)| sample.per_second());
    let best = rates.fold(0.0, f64::max);
    writeln!(text, "\n{head:<40} {:>10} {:>12} {:>12}", "per second", "median", "p99").ok();
    for (name, sample, note) in rows {
        let Some(rate) = sample.per_second() else {
            writeln!(text, "  {name:<38} {note}").ok();
            continue;
        };
        let percentile = |percent| {
            let us = sample.latencies.percentile_us(percent).unwrap_or_default();
            format!("{} µs", Grouped(whole(us)))
        };
        let bar = if *note == NOT_DURABLE { String::new() } else { bar(rate, best) + " " };
        let rate = Grouped(whole(rate)).to_string();
        let (median, p99) = (percentile(50.0), percentile(99.0));
        let line = format!("  {name:<38} {rate:>10} {median:>12} {p99:>12}  {bar}{note}");
        writeln!(text, "{}", line.trim_end()).ok();
    }
}

fn bar(rate: f64, best: f64) -> String {
    let halves = if best > 0.0 { whole(rate / best * (BAR * 2) as f64) } else { 0 };
    let halves = usize::try_from(halves).unwrap_or(0).min(BAR * 2);
    let half = if halves % 2 == 1 { "▌" } else { "" };
    format!("{}{half}", "█".repeat(halves / 2))
}

#[expect(clippy::cast_possible_truncation, reason = "far below 2^64, or shown as that")]
#[expect(clippy::cast_sign_loss, reason = "nothing measured is negative")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use haul_measure::{DepthRead, Latencies, Method, MethodWrite, Rotation};

    use super::*;

    /// Returns a sample of `count` requests with a latency of `us` microseconds each.
    fn sample(count: u32, us: u64) -> Sample {
        let mut latencies = Latencies::default();
        (0..count).for_each(|_| latencies.record(Duration::from_micros(us)));
        Sample { latencies, time: Duration::from_secs(1) }
    }

    /// Returns measurements with these writes (method, latency in microseconds) and reads (queue
    /// depth, reads per second).
    pub(in super::super) fn figures(writes: &[(Method, u64)], reads: &[(usize, u32)]) -> Measured {
        let write = |(method, us): &(Method, u64)| MethodWrite {
            method: *method,
            sample: sample(10, *us),
            why_not: None,
        };
        let read =
            |(depth, rate): &(usize, u32)| DepthRead { depth: *depth, sample: sample(*rate, 100) };
        Measured {
            writes: writes.iter().map(write).collect(),
            reads: reads.iter().map(read).collect(),
            read_bytes_per_s: None,
            write_bytes_per_s: None,
            depth: reads.last().map(|(depth, _)| *depth),
            rotation: Rotation::Unknown,
            notes: Vec::new(),
        }
    }

    #[test]
    fn rows_are_aligned_with_bars_relative_to_the_best() {
        let mut figures = figures(&[(Method::Fdatasync, 250)], &[(1, 1000), (4, 4000)]);
        figures.writes[0].sample.time /= 10;
        figures.read_bytes_per_s = Some(1024.0 * 1024.0 * 512.0);
        figures.write_bytes_per_s = Some(1024.0 * 1024.0 * 2.0);
        let expected = "
writes of 4 KiB, one at a time           per second       median          p99
  overwriting, pwrite + fdatasync               100       250 µs       250 µs  ████████████████████████

random reads of 4 KiB, direct I/O        per second       median          p99
  depth 1                                     1,000       100 µs       100 µs  ██████
  depth 4                                     4,000       100 µs       100 µs  ████████████████████████ chosen

sequential, direct I/O, 1 MiB requests, depth 4: reads 512 MiB/s, writes 2 MiB/s
";
        assert_eq!(measured(&figures), expected);
    }

    #[test]
    fn rows_without_comparable_rate_have_a_note() {
        let mut figures = figures(&[(Method::WrittenOut, 9), (Method::DirectDsync, 9)], &[]);
        figures.writes[1].sample = Sample::default();
        figures.writes[1].why_not = Some("no direct I/O here".to_owned());
        let text = measured(&figures);
        assert!(text.contains("µs  not durable\n") && !text.contains('█'), "{text}");
        assert!(text.contains("O_DIRECT|O_DSYNC          no direct I/O here\n"), "{text}");
        assert!(!text.contains("random reads") && !text.contains("sequential"), "{text}");
    }

    #[test]
    fn reason_is_printed_below_its_choice() {
        let choice = Choice {
            name: "log_files",
            title: "log files",
            choice: "recycled".into(),
            reason: "it pays".into(),
        };
        let text = choices(&[choice]);
        assert!(
            text.contains("  log files       recycled\n                    it pays\n"),
            "{text}"
        );
        assert_eq!(warnings(&[]), "");
        assert!(warnings(&["this".to_owned()]).ends_with("\nwarnings\n  - this\n"));
    }
}
