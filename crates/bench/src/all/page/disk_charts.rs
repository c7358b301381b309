//! Draws the latencies of durable writes, and the rate of random reads by queue depth.

use haul_cli_common::svg::{duration_label, rate_label};
use haul_measure::Method;

use super::super::disk::{DiskFigures, WriteCurve};
use super::svg::{Anchor, Scale, dot, figure, label, line, polyline, ticks};

const SIZE: (f64, f64) = (420.0, 260.0);
const LEFT: f64 = 44.0;
const RIGHT: f64 = 404.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 224.0;

/// Returns the chart of cumulative latencies of the best method, of `fdatasync`, and of a growing
/// file; empty if nothing was measured.
pub(super) fn latencies(disk: &DiskFigures) -> String {
    let named = |method: Method| {
        let name = method.to_string();
        disk.writes.iter().find(move |curve| curve.name == name)
    };
    let mut curves: Vec<&WriteCurve> = Vec::new();
    let wanted = [disk.best_write(), named(Method::Fdatasync), named(Method::Growing)];
    for curve in wanted.into_iter().flatten() {
        if !curves.contains(&curve) {
            curves.push(curve);
        }
    }
    let ends = |curve: &&WriteCurve| Some((curve.points.first()?.1, curve.points.last()?.1));
    let ends: Vec<_> = curves.iter().filter_map(ends).collect();
    let least = ends.iter().map(|it| it.0).fold(f64::INFINITY, f64::min);
    let most = ends.iter().map(|it| it.1).fold(0.0, f64::max);
    if !(least > 0.0 && most.is_finite() && most >= least) {
        return String::new();
    }
    let x = Scale::log((least / 1.05, most * 1.05), (LEFT, RIGHT));
    let y = Scale::linear((0.0, 100.0), (BOTTOM, TOP));
    let mut marks = String::new();
    for percent in [0.0, 50.0, 100.0] {
        marks += &line((LEFT, y.at(percent)), (RIGHT, y.at(percent)), "rule");
        let text = format!("{percent:.0} %");
        marks += &label(LEFT - 6.0, y.at(percent) + 4.0, Anchor::End, "tick", &text);
    }
    for tick in ticks(least, most, 6) {
        marks += &label(x.at(tick), BOTTOM + 18.0, Anchor::Middle, "tick", &duration_label(tick));
    }
    for (number, curve) in curves.iter().enumerate() {
        let points: Vec<_> = curve.points.iter().map(|it| (x.at(it.1), y.at(it.0))).collect();
        marks += &polyline(&points, &format!("curve c{number}"));
        // The area below and right of all curves is empty: the keys are there.
        let at = (LEFT + 112.0, y.at(48.0 - 15.0 * number as f64));
        marks += &line((at.0, at.1 - 4.0), (at.0 + 22.0, at.1 - 4.0), &format!("curve c{number}"));
        let class = format!("name c{number}");
        marks += &label(at.0 + 28.0, at.1, Anchor::Start, &class, &curve.name);
    }
    let describe = |curve: &&WriteCurve| {
        let most = curve.points.last().map_or(0.0, |it| it.1);
        format!(
            "{}: half within {}, all within {}",
            curve.name,
            duration_label(curve.median_us),
            duration_label(most)
        )
    };
    let all: Vec<_> = curves.iter().map(describe).collect();
    let description =
        format!("Share of the writes that took at most this long. {}.", all.join("; "));
    figure("latencies", SIZE, "A durable write of 4 KiB", &description, &marks)
}

/// Returns the chart of random reads per second by queue depth; empty if nothing was measured.
pub(super) fn depths(disk: &DiskFigures) -> String {
    let (Some(first), Some(last)) = (disk.reads.first(), disk.reads.last()) else {
        return String::new();
    };
    let most = disk.reads.iter().map(|it| it.1).fold(0.0, f64::max);
    let x = Scale::log((first.0 as f64, last.0 as f64), (LEFT + 10.0, RIGHT - 10.0));
    let y = Scale::linear((0.0, most * 1.15), (BOTTOM, TOP));
    let place = |it: &(usize, f64)| (x.at(it.0 as f64), y.at(it.1));
    let mut marks = line((LEFT, BOTTOM), (RIGHT, BOTTOM), "rule");
    for read in &disk.reads {
        marks += &label(place(read).0, BOTTOM + 18.0, Anchor::Middle, "tick", &read.0.to_string());
    }
    marks += &polyline(&disk.reads.iter().map(place).collect::<Vec<_>>(), "curve c0");
    for read in &disk.reads {
        let is_knee = Some(read.0) == disk.knee;
        marks += &dot(place(read), if is_knee { 5.0 } else { 3.0 }, "point c0");
        if is_knee || read.0 == first.0 {
            let (at_x, at_y) = place(read);
            let knee = if is_knee { format!("knee at {}: ", read.0) } else { String::new() };
            let text = format!("{knee}{}", rate_label(read.1));
            let is_left = at_x < LEFT.midpoint(RIGHT);
            let (x, y, anchor) = match is_left {
                true if at_y > BOTTOM - 24.0 => (at_x - 4.0, at_y - 10.0, Anchor::Start),
                true => (at_x + 8.0, at_y + 15.0, Anchor::Start),
                false => (at_x + 4.0, at_y - 12.0, Anchor::End),
            };
            marks += &label(x, y, anchor, "name c0", &text);
        }
    }
    let best = disk.knee.map_or(String::new(), |knee| {
        format!(" From {knee} reads at a time on, more of them mainly add latency.")
    });
    let description = format!("Random direct reads of 4 KiB per second, by reads in flight.{best}");
    figure("depths", SIZE, "Random reads by queue depth", &description, &marks)
}

#[cfg(test)]
mod tests {
    use haul_testing::assert_well_formed;

    use super::super::super::disk::tests::figures;
    use super::*;

    #[test]
    fn charts_label_the_curves_and_the_knee() {
        let disk = figures();
        let (latencies, depths) = (latencies(&disk), depths(&disk));
        assert_well_formed(&(latencies.clone() + &depths));
        assert_eq!(latencies.matches("class=\"name").count(), 2, "the best one and fdatasync");
        assert!(latencies.contains("half within 210 µs"), "{latencies}");
        assert!(depths.contains("knee at 8: 52k/s"), "{depths}");
    }

    #[test]
    fn disk_without_figures_has_no_charts() {
        let disk = DiskFigures { writes: Vec::new(), reads: Vec::new(), ..figures() };
        assert_eq!(latencies(&disk) + &depths(&disk), "");
    }
}
