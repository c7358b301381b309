//! Draws the service time of random reads of the simulated spinning disk by distance.

use haul_disk_sim::{MS, Parameters, service_times};

use super::svg::{Anchor, Scale, figure, label, line};

const SIZE: (f64, f64) = (420.0, 260.0);
const LEFT: f64 = 44.0;
const RIGHT: f64 = 404.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 224.0;

/// Returns the chart of a drive: a point for each of some random reads.
pub(super) fn seek_chart(drive: &Parameters) -> String {
    let ms = |ns: u64| ns as f64 / MS as f64;
    let most = ms(drive.seek_full_ns + drive.revolution_ns) + 2.0;
    let x = Scale::linear((0.0, 1.0), (LEFT, RIGHT));
    let y = Scale::linear((0.0, most), (BOTTOM, TOP));
    let mut marks = String::new();
    for tick in (0..).step_by(5).map(f64::from).take_while(|tick| *tick < most) {
        marks += &line((LEFT, y.at(tick)), (RIGHT, y.at(tick)), "rule");
        let text = format!("{tick:.0} ms");
        marks += &label(LEFT - 6.0, y.at(tick) + 4.0, Anchor::End, "tick", &text);
    }
    let point =
        |(distance, ns): (f64, u64)| format!("M{:.0} {:.0}h2", x.at(distance), y.at(ms(ns)));
    let points: String = service_times(drive).map(point).collect();
    marks += &format!("<path class=\"cloud\" d=\"{points}\"/>\n");
    for (text, at, anchor) in
        [("same place", 0.0, Anchor::Start), ("whole drive", 1.0, Anchor::End)]
    {
        marks += &label(x.at(at), BOTTOM + 18.0, anchor, "tick", text);
    }
    let description = format!(
        "Random reads of 4 KiB of the simulated drive {} by their distance from the read before. The \
         lower edge is the seek; up to one revolution ({:.1} ms) of waiting for the sector is added. \
         Sorting requests shortens the distances.",
        drive.name,
        ms(drive.revolution_ns),
    );
    figure("seeks", SIZE, "Why order matters on a spinning disk", &description, &marks)
}

#[cfg(test)]
mod tests {
    use haul_testing::assert_well_formed;

    use super::*;

    #[test]
    fn each_drive_has_a_chart_with_a_thousand_points() {
        for drive in Parameters::all() {
            let chart = seek_chart(&drive);
            assert_well_formed(&chart);
            assert!(chart.matches("h2").count() > 1000 && chart.contains(drive.name));
        }
    }
}
