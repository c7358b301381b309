//! Plots the read times of a drive against the seek distance.

use haul_testing::Random;

use crate::model::{Drive, Kind, MS, Nanos, Parameters, Request, SECTOR_BYTES};

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 400.0;
const MARGIN: f64 = 40.0;
const READS: usize = 1500;

/// The colours on a light and on a dark page.
const STYLE: &str = "
rect { fill: #fff; } text { fill: #1d1f23; } .rule { stroke: #e2dfd9; }
.read { stroke: #2b5c9e; stroke-width: 2; stroke-opacity: .5; }
@media (prefers-color-scheme: dark) {
  rect { fill: #1d2024; } text { fill: #e8e6e3; } .rule { stroke: #3a3f46; }
  .read { stroke: #6fa3e8; }
}
";

/// Returns the plot of a drive as SVG, with a point for each of 1500 reads of 4 KiB at uniformly
/// random locations of the whole drive, served by the model.
#[must_use]
pub fn plot(parameters: &Parameters) -> String {
    let ms_max = (parameters.seek_full_ns + parameters.revolution_ns) as f64 / MS as f64 + 2.0;
    let x = |part: f64| MARGIN + part * (WIDTH - 2.0 * MARGIN);
    let y = |ms: f64| HEIGHT - MARGIN - ms / ms_max * (HEIGHT - 2.0 * MARGIN);
    let ms = |time: Nanos| time as f64 / MS as f64;
    let point = |(part, service_ns)| format!("M{:.0} {:.0}h2", x(part), y(ms(service_ns)));
    let points: String = service_times(parameters).map(point).collect();
    let line = |ms: f64| {
        let (left, right, at) = (x(0.0), x(1.0), y(ms));
        format!(
            r#"<path class="rule" d="M{left:.0} {at:.0}H{right:.0}"/>
<text x="{MARGIN}" y="{at:.0}" dx="-6" dy="4" text-anchor="end">{ms}</text>
"#
        )
    };
    let ticks = (0..).step_by(5).map(f64::from).take_while(|ms| *ms < ms_max);
    let labels: String = ticks.map(line).collect();
    let (name, middle, below) = (parameters.name, WIDTH / 2.0, HEIGHT - 8.0);
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"
 font-family="sans-serif" font-size="12">
<style>{STYLE}</style>
<rect width="{WIDTH}" height="{HEIGHT}" rx="10"/>
{labels}<path class="read" d="{points}"/>
<text x="{middle}" y="20" text-anchor="middle">{name}: milliseconds of a 4 KiB read</text>
<text x="{middle}" y="{below}" text-anchor="middle">distance from the previous read, as a fraction of the drive</text>
</svg>
"#
    )
}

/// Returns two values for each of 1500 reads of 4 KiB at uniformly random locations of the whole
/// drive: the distance from the previous read, as a fraction of the capacity of the drive, and the
/// service time.
pub fn service_times(parameters: &Parameters) -> impl Iterator<Item = (f64, Nanos)> {
    let pages = parameters.capacity_bytes / SECTOR_BYTES / 8;
    let (mut drive, mut random) =
        (Drive::new(parameters.clone(), parameters.capacity_bytes), Random(1));
    let mut last = 0;
    (0..READS).map(move |_| {
        let (page, arrived_ns) = (random.below(pages), drive.free_ns());
        let request = Request { kind: Kind::Read, sector: page * 8, sectors: 8, arrived_ns };
        let service_ns = drive.serve(&request) - arrived_ns;
        let distance = page.abs_diff(last) as f64 / pages as f64;
        last = page;
        (distance, service_ns)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_times_lie_within_one_revolution_above_the_seek_curve() {
        for parameters in Parameters::all() {
            let ns = |time: Nanos| time as f64;
            let root_ns = ns(parameters.seek_average_ns - parameters.seek_track_ns) * 15.0 / 8.0;
            for (part, service_ns) in service_times(&parameters) {
                // Outer tracks have up to twice as many sectors as inner ones, so the fraction of
                // the stroke is between half and twice the fraction of the drive.
                let curve_ns = |stroke: f64| ns(parameters.seek_track_ns) + root_ns * stroke.sqrt();
                let least_ns = curve_ns(part / 2.0).min(ns(parameters.seek_full_ns));
                let most_ns = curve_ns((part * 2.0).min(1.0)).min(ns(parameters.seek_full_ns));
                let slack_ns = ns(parameters.revolution_ns + parameters.overhead_ns + MS);
                assert!(ns(service_ns) > least_ns, "{part}: {service_ns}");
                assert!(ns(service_ns) < most_ns + slack_ns, "{part}: {service_ns}");
            }
            let svg = plot(&parameters);
            assert!(svg.matches("h2").count() == READS && svg.ends_with("</svg>\n"));
        }
    }

    #[test]
    fn pictures_of_the_documentation_are_those_of_the_model() {
        for parameters in Parameters::all() {
            let name = format!("docs/spinning-disk-{}.svg", parameters.name);
            let picture = std::fs::read_to_string(haul_testing::root().join(&name)).unwrap();
            let command = format!("spinning-disk --drive {} --plot {name}", parameters.name);
            assert!(picture == plot(&parameters), "not current; to draw it: {command}");
        }
    }
}
