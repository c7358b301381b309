//! Defines the targets of durable puts, the columns of their rows in the report, and the ratios.
//! Performs no I/O.

use std::fmt;

use crate::contest::{Contest, Entry, Field, best_of_families};
use crate::log::Sample;
use crate::report::{Column, Report};

/// The target of the puts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    /// The file store of Haul, storing new objects.
    Store,
    /// The file store of Haul, overwriting objects.
    Overwriting,
    /// Batches written to one file whose blocks were written before.
    Floor,
    /// Batches written to new blocks.
    NewBlocks,
    /// A new file for each put, synced together with its directory.
    Files,
    /// A database, by the name of its form (configuration) in `haul-bench-compare`.
    Rival(String),
}

impl Target {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Store => "haul",
            Self::Overwriting => "haul: overwriting",
            Self::Floor => "floor: group commit",
            Self::NewBlocks => "floor: new blocks",
            Self::Files => "file, fsync",
            Self::Rival(form) => form,
        }
    }

    /// Returns the name of the target in ratios: for a rival that of its family, which all of its
    /// forms share.
    fn family(&self) -> &str {
        match self {
            Self::Store => "store",
            Self::Overwriting => "overwriting",
            Self::Floor => "floor",
            Self::NewBlocks => "new_blocks",
            Self::Files => "files",
            Self::Rival(form) => form.split('/').next().unwrap_or(form),
        }
    }
}

/// A target under a load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Strategy {
    pub(super) target: Target,
    pub(super) file_bytes: usize,
    pub(super) writers: usize,
}

impl Strategy {
    pub(super) fn group(&self) -> String {
        format!("{} bytes, {} writers", self.file_bytes, self.writers)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.group(), self.target.name())
    }
}

/// One measurement, with the length of a file.
#[derive(Debug, Clone)]
pub(super) struct Round {
    pub(super) sample: Sample,
    pub(super) file_bytes: usize,
}

pub(super) fn rate(round: &Round) -> Option<f64> {
    Some(round.sample.rate())
}

/// Returns the bytes written to the device for each byte of the files.
fn amplification(round: &Round) -> Option<f64> {
    Some(round.sample.each(round.sample.device_bytes)? / round.file_bytes as f64)
}

/// The column whose values are drawn as bars.
pub(super) const BAR: &str = "puts_per_s";

/// The columns of the table: medians of the rounds.
pub(super) const FIELDS: &[Field<Strategy, Round>] = &[
    Field::label("target", "target", |strategy| strategy.target.name().into()),
    Field::parameter(Column::number("file_bytes", "bytes", 0), |strategy| {
        (strategy.file_bytes as f64).into()
    }),
    Field::parameter(Column::number("writers", "writers", 0), |strategy| {
        (strategy.writers as f64).into()
    }),
    Field::spread(Column::number("puts_per_s", "puts/s", 0), 5, rate),
    Field::median(Column::number("p50_us", "p50 µs", 0), |round| round.sample.p50_us),
    Field::median(Column::number("p99_us", "p99 µs", 0), |round| round.sample.p99_us),
    Field::median(Column::number("cpu_us_per_put", "CPU µs", 1), |round| {
        Some(round.sample.each(round.sample.cpu_seconds)? * 1e6)
    }),
    Field::median(Column::number("device_bytes_per_byte", "bytes/byte", 2), amplification),
    Field::median(Column::number("device_writes_per_put", "writes", 2).ranked(3), |round| {
        round.sample.each(round.sample.device_writes)
    }),
    Field::median(Column::number("device_syncs_per_put", "syncs", 3).ranked(3), |round| {
        round.sample.each(round.sample.device_syncs)
    }),
];

/// Adds the rate of the store divided by those of the other targets, and the bytes it writes. A
/// rival counts in its fastest form.
pub(super) fn add_ratios(contest: &Contest<Strategy, Round>, prefix: &str, report: &mut Report) {
    let stores = contest.entries.iter().filter(|entry| entry.strategy.target == Target::Store);
    for store in stores {
        let Strategy { file_bytes, writers, .. } = store.strategy;
        let is_same_load = |entry: &&Entry<Strategy, Round>| {
            entry.strategy.file_bytes == file_bytes && entry.strategy.writers == writers
        };
        let family = |entry: &Entry<Strategy, Round>| entry.strategy.target.family().to_owned();
        let entries = contest.entries.iter().filter(is_same_load);
        for (family, best) in best_of_families(entries, family, rate) {
            if family != Target::Store.family() {
                let name = format!("{prefix}store_vs_{family}_{file_bytes}_{writers}w");
                report.ratio(name, store.ratio(best, rate));
            }
        }
        let name = format!("{prefix}device_bytes_per_byte_{file_bytes}_{writers}w");
        report.amount(name, store.samples(amplification));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::{Outcome, columns};
    use crate::host::Host;

    #[test]
    fn rival_counts_in_its_fastest_form_and_failed_forms_do_not_count() {
        let rival = |form: &str| Target::Rival(form.to_owned());
        let targets = [
            (Target::Store, Some(600.0)),
            (Target::Floor, Some(1200.0)),
            (rival("lmdb"), Some(100.0)),
            (rival("lmdb/batched"), Some(300.0)),
            (rival("sqlite"), None),
        ];
        let strategy = |target| Strategy { target, file_bytes: 4096, writers: 16 };
        let strategies = targets.iter().map(|(target, _)| strategy(target.clone()));
        let mut contest = Contest::new(FIELDS, strategies);
        for (which, (_, rate)) in targets.iter().enumerate() {
            let round = |appends| {
                let device_bytes = Some(appends * 8192.0);
                let sample = Sample { appends, seconds: 1.0, device_bytes, ..Sample::default() };
                Outcome::Measured(Round { sample, file_bytes: 4096 })
            };
            let failed = Outcome::Skipped("the disk is full".to_owned());
            contest.record(which, rate.map_or(failed, round));
        }
        let mut report = Report::new("small-files", Host::default(), columns(FIELDS), BAR);
        add_ratios(&contest, "", &mut report);
        let expected = [
            ("device_bytes_per_byte_4096_16w", 2.0),
            ("store_vs_floor_4096_16w", 0.5),
            ("store_vs_lmdb_4096_16w", 2.0),
        ];
        assert_eq!(report.values(), expected.map(|(name, ratio)| (name.to_owned(), ratio)).into());
    }
}
