//! Draws the requests of a durable record to the device on a time line.

use haul_cli_common::svg::duration_label;

use super::svg::{Anchor, Scale, dot, figure, label, line};
use crate::write_modes::timeline::{RequestKind, Timeline};

const WIDTH: f64 = 420.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 404.0;
const LANE: f64 = 22.0;
/// The height of one time line: a heading, three lanes, and a gap.
const BLOCK: f64 = 110.0;

const LANES: [(RequestKind, &str); 3] =
    [(RequestKind::Data, "record"), (RequestKind::Journal, "journal"), (RequestKind::Sync, "sync")];

/// Returns the chart of all time lines with a common scale; empty if there are none.
pub(super) fn timeline_chart(timelines: &[Timeline]) -> String {
    let most = timelines.iter().map(|it| it.end_us).max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let x = Scale::linear((0.0, most as f64), (LEFT, RIGHT));
    let marks: String = (0..).zip(timelines).map(|(number, it)| block(number, it, &x)).collect();
    let describe = |it: &Timeline| {
        let kib: u64 = it.requests.iter().map(|request| request.bytes).sum::<u64>() / 1024;
        let syncs = it.requests.iter().filter(|it| it.kind == RequestKind::Sync).count();
        let end = duration_label(it.end_us as f64);
        let plural = if syncs == 1 { "" } else { "s" };
        format!("{}: {kib} KiB written, {syncs} sync{plural}, durable after {end}", title(it))
    };
    let all: Vec<_> = timelines.iter().map(describe).collect();
    let description = format!(
        "The requests that one durable record of 4 KiB sends to a new ext4, from the block trace. {}.",
        all.join("; ")
    );
    let height = BLOCK * timelines.len() as f64;
    figure("journal", (WIDTH, height), "A durable record and the journal", &description, &marks)
}

fn title(timeline: &Timeline) -> &'static str {
    match timeline.name {
        "append" => "Growing file",
        _ => "File filled before",
    }
}

fn block(number: u32, timeline: &Timeline, x: &Scale) -> String {
    let top = BLOCK * f64::from(number);
    let mut marks = label(LEFT, top + 14.0, Anchor::Start, "name", title(timeline));
    let lane_y = |lane: usize| top + 34.0 + LANE * lane as f64;
    for (lane, (kind, name)) in LANES.into_iter().enumerate() {
        let y = lane_y(lane);
        marks += &label(LEFT - 8.0, y + 4.0, Anchor::End, "tick", name);
        marks += &line((LEFT, y), (RIGHT, y), "rule");
        for request in timeline.requests.iter().filter(|request| request.kind == kind) {
            let at = (x.at(request.at_us as f64), y);
            let class = format!("point {}", kind.name());
            marks += &dot(at, 4.5, &class);
            if kind != RequestKind::Sync {
                let text = format!("{} KiB", request.bytes / 1024);
                let (dx, anchor) =
                    if at.0 < RIGHT - 50.0 { (8.0, Anchor::Start) } else { (-8.0, Anchor::End) };
                marks += &label(at.0 + dx, y - 4.0, anchor, "tick", &text);
            }
        }
    }
    let end = x.at(timeline.end_us as f64);
    marks += &line((end, top + 22.0), (end, lane_y(2) + 8.0), "rule one");
    let text = format!("durable after {}", duration_label(timeline.end_us as f64));
    let (x, y, anchor) = match end > LEFT.midpoint(RIGHT) {
        true => (end, top + 14.0, Anchor::End),
        false => (end + 8.0, lane_y(1) + 4.0, Anchor::Start),
    };
    marks + &label(x, y, anchor, "value", &text)
}

#[cfg(test)]
mod tests {
    use haul_testing::assert_well_formed;

    use super::super::tests::timelines;
    use super::*;

    #[test]
    fn each_request_is_a_dot_in_the_lane_of_its_kind() {
        let chart = timeline_chart(&timelines());
        assert_well_formed(&chart);
        for (kind, count) in [("data", 2), ("journal", 2), ("sync", 3)] {
            let dots = chart.matches(&format!("class=\"point {kind}\"")).count();
            assert_eq!(dots, count, "{kind}");
        }
        assert!(chart.contains("Growing file: 24 KiB written, 2 syncs, durable after 800 µs"));
        assert_eq!(timeline_chart(&[]), "");
    }
}
