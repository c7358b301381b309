//! Counts latencies in bins of a logarithmic scale.

use haul_cli_common::svg::Scale;
use haul_measure::Latencies;

/// The number of levels of a cell; 0 is an empty one.
const LEVELS: f64 = 8.0;

/// The percentiles from which the bins are counted, each for as many requests as the next one.
const SAMPLES: u32 = 1000;

/// The largest percentile of the scale: a single slow request would compress all others.
const MOST_PERCENT: f64 = 99.9;

/// The levels of the bins of a distribution, in ascending order of the latency.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bins(pub(super) Vec<u32>);

/// Several distributions with the same bins.
#[derive(Debug)]
pub(super) struct Heat {
    /// The ends of the scale.
    pub(super) least_us: f64,
    pub(super) most_us: f64,
    pub(super) columns: Vec<Bins>,
}

impl Heat {
    /// Counts each distribution in `bins` bins; `None` if there is no latency.
    pub(super) fn of(latencies: &[&Latencies], bins: usize) -> Option<Self> {
        let ends = |percent| latencies.iter().filter_map(move |it| it.percentile_us(percent));
        let least_us = ends(0.5).fold(f64::INFINITY, f64::min).max(0.1) / 1.1;
        let most_us = ends(MOST_PERCENT).fold(0.0, f64::max) * 1.1;
        if most_us <= least_us {
            return None;
        }
        let scale = Scale::log((least_us, most_us), (0.0, bins as f64));
        let counts: Vec<_> = latencies.iter().map(|it| counts(it, &scale, bins)).collect();
        let most = f64::from(counts.iter().flatten().copied().max().unwrap_or(1).max(1));
        let columns = counts.iter().map(|it| Bins(it.iter().map(|it| level(*it, most)).collect()));
        Some(Self { least_us, most_us, columns: columns.collect() })
    }

    /// Returns the scale between two positions.
    pub(super) fn scale(&self, ends: (f64, f64)) -> Scale {
        Scale::log((self.least_us, self.most_us), ends)
    }
}

fn counts(latencies: &Latencies, scale: &Scale, bins: usize) -> Vec<u32> {
    let mut counts = vec![0; bins];
    for sample in 0..SAMPLES {
        let percent = (f64::from(sample) + 0.5) * 100.0 / f64::from(SAMPLES);
        if percent > MOST_PERCENT {
            break;
        }
        let Some(us) = latencies.percentile_us(percent) else { break };
        #[expect(clippy::cast_possible_truncation, reason = "between 0 and the number of bins")]
        #[expect(clippy::cast_sign_loss, reason = "between 0 and the number of bins")]
        let bin = scale.at(us).floor() as usize;
        counts[bin.min(bins - 1)] += 1;
    }
    counts
}

/// Returns the level of a bin. The root keeps rare latencies visible.
fn level(count: u32, most: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "at most the number of levels")]
    #[expect(clippy::cast_sign_loss, reason = "a root is not negative")]
    let level = ((f64::from(count) / most).sqrt() * LEVELS).ceil() as u32;
    level
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn latencies(samples: &[(u64, u32)]) -> Latencies {
        let mut latencies = Latencies::default();
        for (us, times) in samples {
            (0..*times).for_each(|_| latencies.record(Duration::from_micros(*us)));
        }
        latencies
    }

    #[test]
    fn most_frequent_bin_has_the_highest_level_and_rare_ones_are_visible() {
        let (fast, both) = (latencies(&[(100, 1000)]), latencies(&[(100, 750), (10_000, 250)]));
        let heat = Heat::of(&[&fast, &both], 10).unwrap();
        let of = |column: usize| &heat.columns[column].0;
        assert_eq!((of(0)[0], of(0).iter().sum::<u32>()), (8, 8), "{heat:?}");
        assert_eq!((of(1)[0], of(1)[9]), (7, 4), "{heat:?}");
        assert_eq!(of(1)[1..9].iter().sum::<u32>(), 0, "{heat:?}");
        assert!(heat.least_us < 100.0 && heat.most_us > 10_000.0);
    }

    #[test]
    fn distributions_without_latencies_have_no_bins() {
        assert!(Heat::of(&[], 10).is_none());
        assert!(Heat::of(&[&Latencies::default()], 10).is_none());
    }
}
