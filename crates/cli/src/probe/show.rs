//! What was found out, for people. Pure.

use std::fmt::Write;

use haul_bench::storage::{BLOCK_BYTES, LONG_BYTES, LONG_DEPTH, Measured, Sample};

use super::choices::Choice;
use crate::units::{Bytes, Grouped};

/// Stands in the place of a bar: what is not durable does not compete.
const NOT_DURABLE: &str = "not durable";
/// How long the bar of the fastest is.
const BAR: usize = 24;

/// The choices, each with its reason below.
pub(super) fn choices(choices: &[Choice]) -> String {
    let mut text = "\nwhat Haul does here\n".to_owned();
    for Choice { what, choice, why } in choices {
        writeln!(text, "  {what:<15} {choice}").ok();
        writeln!(text, "  {:<15}   {why}", "").ok();
    }
    text
}

/// The warnings, if there are any.
pub(super) fn warnings(warnings: &[String]) -> String {
    let mut text = String::new();
    if !warnings.is_empty() {
        text.push_str("\nbeware\n");
    }
    for warning in warnings {
        writeln!(text, "  - {warning}").ok();
    }
    text
}

/// The figures.
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
    table(&mut text, &format!("writes of {block}, one after the other"), &rows);
    if !measured.reads.is_empty() {
        let rows: Vec<_> = measured
            .reads
            .iter()
            .map(|row| {
                let note = if Some(row.depth) == measured.depth { "chosen" } else { "" };
                (format!("{} at a time", row.depth), &row.sample, note)
            })
            .collect();
        table(&mut text, &format!("random reads of {block}, past the cache"), &rows);
    }
    if let (Some(read), Some(write)) = (measured.read_bytes_per_s, measured.write_bytes_per_s) {
        writeln!(
            text,
            "\nin sequence past the cache, {} each, {LONG_DEPTH} at a time: reads {}/s, writes {}/s",
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
    let competing = rows.iter().filter(|(_, _, note)| *note != NOT_DURABLE);
    let rates = competing.filter_map(|(_, sample, _)| sample.per_second());
    let best = rates.fold(0.0, f64::max);
    writeln!(text, "\n{head:<40} {:>10} {:>12} {:>12}", "a second", "median", "99 %").ok();
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
mod tests {
    use haul_bench::storage::Method;

    use super::*;
    use crate::probe::choices::tests::measured as figures;

    #[test]
    fn figures_stand_in_columns_with_bars_against_the_best() {
        let mut figures = figures(&[(Method::Fdatasync, 250)], &[(1, 1000), (4, 4000)]);
        figures.writes[0].sample.time /= 10;
        figures.read_bytes_per_s = Some(1024.0 * 1024.0 * 512.0);
        figures.write_bytes_per_s = Some(1024.0 * 1024.0 * 2.0);
        let expected = "
writes of 4 KiB, one after the other       a second       median         99 %
  overwriting, pwrite + fdatasync               100       250 µs       250 µs  ████████████████████████

random reads of 4 KiB, past the cache      a second       median         99 %
  1 at a time                                 1,000       100 µs       100 µs  ██████
  4 at a time                                 4,000       100 µs       100 µs  ████████████████████████ chosen

in sequence past the cache, 1 MiB each, 4 at a time: reads 512 MiB/s, writes 2 MiB/s
";
        assert_eq!(measured(&figures), expected);
    }

    #[test]
    fn what_is_not_durable_and_what_cannot_be_measured_say_so() {
        let mut figures = figures(&[(Method::WrittenOut, 9), (Method::DirectDsync, 9)], &[]);
        figures.writes[1].sample = Sample::default();
        figures.writes[1].why_not = Some("no direct I/O here".to_owned());
        let text = measured(&figures);
        assert!(text.contains("µs  not durable\n") && !text.contains('█'), "{text}");
        assert!(text.contains("O_DIRECT|O_DSYNC          no direct I/O here\n"), "{text}");
        assert!(!text.contains("random reads") && !text.contains("in sequence"), "{text}");
    }

    #[test]
    fn reasons_stand_below_what_they_are_for() {
        let choice =
            Choice { what: "log files", choice: "used again".into(), why: "it pays".into() };
        let text = choices(&[choice]);
        assert!(
            text.contains("  log files       used again\n                    it pays\n"),
            "{text}"
        );
        assert_eq!(warnings(&[]), "");
        assert!(warnings(&["this".to_owned()]).ends_with("\nbeware\n  - this\n"));
    }
}
