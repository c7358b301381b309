//! Draws the measurements of `haul probe` as an SVG: the rate of random reads by queue depth with
//! its knee, and heat maps of the latencies of reads and of durable writes. The module does no I/O.

mod heat;

use haul_cli_common::svg::{
    Anchor, Cells, Scale, document, dot, duration_label, label, line, polyline, rate_label, ticks,
};
use haul_disk::Storage;
use haul_measure::{BLOCK_BYTES, DepthRead, Measured, MethodWrite};

use self::heat::{Bins, Heat};
use crate::units::Bytes;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 696.0;
/// The chart of rates, the heat map of reads below it, and the first row of writes.
const RATE: (f64, f64) = (100.0, 190.0);
const READ: (f64, f64) = (206.0, 436.0);
const WRITE_TOP: f64 = 524.0;
/// The ends of the rows of writes, and their height.
const WRITE: (f64, f64) = (254.0, 576.0);
const ROW: f64 = 26.0;
/// The number of latency bins of a column of reads, and of a row of writes.
const READ_BINS: usize = 38;
const WRITE_BINS: usize = 68;

/// Returns the picture. Its parts that were not measured are empty.
pub(super) fn picture(storage: &Storage, measured: &Measured) -> String {
    let durable: Vec<&MethodWrite> = measured
        .writes
        .iter()
        .filter(|row| row.method.is_durable() && row.sample.latencies.count() > 0)
        .collect();
    let bottom = WRITE_TOP + ROW * durable.len() as f64;
    let notes = measured.notes.iter().zip(0_u32..).map(|(note, number)| {
        label(24.0, bottom + 48.0 + 18.0 * f64::from(number), Anchor::Start, "tick", note)
    });
    let notes: String = notes.collect();
    let height = bottom + 42.0 + 18.0 * measured.notes.len() as f64;
    let marks = reads(measured) + &writes(&durable) + &notes;
    let device = storage.device.as_ref().map_or("an unknown device", |device| &device.disk);
    let title = format!("{} on {device}", storage.file_system);
    let block = Bytes(BLOCK_BYTES as u64);
    let hint = format!(
        "Random direct reads of {block}: rate and latencies by reads in flight. The stronger the colour, \
         the more requests."
    );
    document((WIDTH, height), &title, &hint, &description(measured, &durable), &marks)
}

/// Describes the picture for readers who do not see it.
fn description(measured: &Measured, durable: &[&MethodWrite]) -> String {
    let median = |latencies: &haul_measure::Latencies| {
        duration_label(latencies.percentile_us(50.0).unwrap_or_default())
    };
    let read = |row: &DepthRead| {
        let rate = rate_label(row.sample.per_second().unwrap_or_default());
        format!("{rate} at depth {}, median {}", row.depth, median(&row.sample.latencies))
    };
    let write =
        |row: &&MethodWrite| format!("{}: median {}", row.method, median(&row.sample.latencies));
    let reads: Vec<_> = measured.reads.iter().map(read).collect();
    let writes: Vec<_> = durable.iter().map(write).collect();
    format!("Random reads: {}. Durable writes: {}.", reads.join("; "), writes.join("; "))
}

fn reads(measured: &Measured) -> String {
    let rows: Vec<_> =
        measured.reads.iter().filter(|row| row.sample.latencies.count() > 0).collect();
    let columns: Vec<_> = rows.iter().map(|row| &row.sample.latencies).collect();
    let Some(heat) = Heat::of(&columns, READ_BINS) else { return String::new() };
    let rates: Vec<_> =
        rows.iter().map(|row| row.sample.per_second().unwrap_or_default()).collect();
    let rate = Scale::linear((0.0, rates.iter().copied().fold(0.0, f64::max)), (RATE.1, RATE.0));
    let latency = heat.scale((READ.1, READ.0));
    let width = (RIGHT - LEFT) / rows.len() as f64;
    let center = |number: usize| LEFT + width * (number as f64 + 0.5);
    let mut marks = line((LEFT, RATE.1), (RIGHT, RATE.1), "rule");
    for tick in ticks(heat.least_us, heat.most_us, 12) {
        marks += &line((LEFT - 4.0, latency.at(tick)), (RIGHT, latency.at(tick)), "rule");
        let text = duration_label(tick);
        marks += &label(LEFT - 8.0, latency.at(tick) + 4.0, Anchor::End, "tick", &text);
    }
    marks += &cells(&heat, |number, bin| {
        let height = (READ.1 - READ.0) / READ_BINS as f64;
        let at = (center(number) - width * 0.42, READ.1 - height * (bin as f64 + 1.0));
        (at, (width * 0.84, height))
    });
    for (percent, class) in [(50.0, "curve ink"), (99.0, "curve second")] {
        let point = |(number, row): (usize, &&DepthRead)| {
            let us = row.sample.latencies.percentile_us(percent)?;
            Some((center(number), latency.at(us)))
        };
        let points: Vec<_> = rows.iter().enumerate().filter_map(point).collect();
        marks += &polyline(&points, class);
        if let Some((_, y)) = points.last() {
            let (text, y) = match percent < 60.0 {
                true => ("median", y + 24.0),
                false => ("99th percentile", y - 9.0),
            };
            marks += &label(RIGHT - width * 0.1, y, Anchor::End, "name halo", text);
        }
    }
    let points: Vec<_> =
        rates.iter().enumerate().map(|(at, it)| (center(at), rate.at(*it))).collect();
    marks += &polyline(&points, "curve");
    for (number, row) in rows.iter().enumerate() {
        let is_knee = Some(row.depth) == measured.depth;
        let (x, y) = points[number];
        if is_knee {
            marks += &line((x, RATE.0 - 8.0), (x, READ.1), "one");
            marks += &label(x, RATE.1 - 8.0, Anchor::Middle, "name halo", "knee");
        }
        marks += &dot((x, y), if is_knee { 5.5 } else { 3.5 }, "");
        let class = if is_knee { "name halo" } else { "halo" };
        marks += &label(x, y - 10.0, Anchor::Middle, class, &rate_label(rates[number]));
        marks += &label(x, READ.1 + 18.0, Anchor::Middle, "tick", &row.depth.to_string());
    }
    marks + &label(LEFT - 8.0, READ.1 + 18.0, Anchor::End, "tick", "depth")
}

fn writes(durable: &[&MethodWrite]) -> String {
    let columns: Vec<_> = durable.iter().map(|row| &row.sample.latencies).collect();
    let Some(heat) = Heat::of(&columns, WRITE_BINS) else { return String::new() };
    let latency = heat.scale(WRITE);
    let block = Bytes(BLOCK_BYTES as u64);
    let heading = format!("Durable writes of {block}, one at a time");
    let mut marks = label(24.0, WRITE_TOP - 24.0, Anchor::Start, "name", &heading);
    for (x, text) in [(WRITE.1 + 50.0, "median"), (RIGHT, "p99")] {
        marks += &label(x, WRITE_TOP - 24.0, Anchor::End, "tick", text);
    }
    let bottom = WRITE_TOP + ROW * durable.len() as f64;
    for tick in ticks(heat.least_us, heat.most_us, 7) {
        let x = latency.at(tick);
        marks += &line((x, WRITE_TOP - 6.0), (x, bottom), "rule");
        marks += &label(x, bottom + 14.0, Anchor::Middle, "tick", &duration_label(tick));
    }
    marks += &cells(&heat, |number, bin| {
        let width = (WRITE.1 - WRITE.0) / WRITE_BINS as f64;
        let at = (WRITE.0 + width * bin as f64, WRITE_TOP + ROW * number as f64);
        (at, (width, ROW - 6.0))
    });
    for (number, row) in durable.iter().enumerate() {
        let y = WRITE_TOP + ROW * number as f64;
        marks += &label(WRITE.0 - 12.0, y + 14.0, Anchor::End, "", &row.method.to_string());
        for (percent, x) in [(50.0, WRITE.1 + 50.0), (99.0, RIGHT)] {
            let us = row.sample.latencies.percentile_us(percent).unwrap_or_default();
            marks += &label(x, y + 14.0, Anchor::End, "", &duration_label(us));
            let class = if percent < 60.0 { "curve ink" } else { "curve second" };
            let x = latency.at(us);
            marks += &line((x, y - 2.0), (x, y + ROW - 4.0), class);
        }
    }
    marks
}

/// Draws a heat map, whose cells `place` places by the number of the distribution and of the bin.
fn cells(heat: &Heat, place: impl Fn(usize, usize) -> ((f64, f64), (f64, f64))) -> String {
    let mut cells = Cells::default();
    for (number, Bins(levels)) in heat.columns.iter().enumerate() {
        for (bin, level) in levels.iter().enumerate().filter(|(_, level)| **level > 0) {
            let (at, size) = place(number, bin);
            cells.add(&format!("h{level}"), at, size);
        }
    }
    cells.finish()
}

#[cfg(test)]
mod tests {
    use haul_measure::Method;
    use haul_testing::assert_well_formed;

    use super::super::show::tests::figures;
    use super::*;

    fn storage() -> Storage {
        haul_disk::probe(std::path::Path::new(".")).unwrap()
    }

    #[test]
    fn picture_has_rates_medians_and_the_knee() {
        let measured = figures(
            &[(Method::Fdatasync, 250), (Method::WrittenOut, 9)],
            &[(1, 1000), (8, 52_000)],
        );
        let picture = picture(&storage(), &measured);
        assert_well_formed(&picture);
        for text in [">52k/s<", ">1.0k/s<", ">knee<", ">median<", ">250 µs<", ">p99<"] {
            assert!(picture.contains(text), "{text}: {picture}");
        }
        assert!(!picture.contains("sync_file_range"), "not durable");
        assert!(picture.contains("52k/s at depth 8, median 100 µs"), "{picture}");
        assert!(picture.len() < 20_000, "{} B", picture.len());
    }

    #[test]
    fn picture_without_reads_and_writes_is_well_formed() {
        let mut measured = figures(&[], &[]);
        measured.notes.push("a < b".to_owned());
        let picture = picture(&storage(), &measured);
        assert_well_formed(&picture);
        assert!(picture.contains("a &lt; b") && !picture.contains("class=\"cell"), "{picture}");
    }
}
