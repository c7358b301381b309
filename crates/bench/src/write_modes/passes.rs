//! Measures the passes of all modes on one file system, in interleaved rounds.

use std::fmt;

use haul_measure::{Result, Watcher, turns};

use super::measure::{Limits, Pass, finish, pass};
use super::modes::Cell;
use super::prepare::{Prepared, prepare, remove};
use super::target_fs::TargetFs;
use crate::contest::{Contest, Field, Outcome, Stage};
use crate::report::Report;
use crate::trace::Tracing;

/// The number of passes over a file.
const PASSES: usize = 2;

/// A mode in one of its passes, which are numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Strategy {
    pub(crate) cell: Cell,
    pub(crate) pass: usize,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, pass {}", self.cell, self.pass)
    }
}

/// Returns a contest of both passes of all modes, sorted by sync and length, then by pass.
pub(crate) fn contest(
    fields: &'static [Field<Strategy, Pass>],
    cells: &[Cell],
) -> Contest<Strategy, Pass> {
    let groups = cells.chunk_by(|a, b| (a.sync, a.record_bytes) == (b.sync, b.record_bytes));
    let strategies = groups.flat_map(|group| {
        (1..=PASSES).flat_map(|pass| group.iter().map(move |cell| Strategy { cell: *cell, pass }))
    });
    Contest::new(fields, strategies)
}

/// Measures all modes on a file system. `limits` returns the limits of a pass of a mode.
pub(crate) fn measure_on(
    place: &TargetFs,
    stage: &Stage<'_>,
    fields: &'static [Field<Strategy, Pass>],
    cells: &[Cell],
    limits: &dyn Fn(&Cell) -> Limits,
    report: &mut Report,
) -> Result<Contest<Strategy, Pass>> {
    let tracing = place.tracing().map_err(|why| {
        report.notes.push(format!(
            "{}: writes are not attributed, which needs root and the kernel's tracing: {}.",
            place.name,
            haul_disk::error_chain(&why)
        ));
    });
    let tracing = tracing.ok();
    let mut contest = contest(fields, cells);
    let mut lost = 0;
    for turn in turns(stage.rounds, cells.len()) {
        let cell = &cells[turn.which];
        stage.step(turn, cell)?;
        let passes = measure_passes(place, cell, limits(cell), tracing.as_ref(), stage.watcher)?;
        for (number, outcome) in (1..).zip(passes) {
            if let Outcome::Measured(pass) = &outcome {
                lost += pass.lost_events;
            }
            let strategy = Strategy { cell: *cell, pass: number };
            let which = contest.entries.iter().position(|entry| entry.strategy == strategy);
            if let Some(which) = which {
                contest.record(which, outcome);
            }
        }
    }
    if lost > 0 {
        report.notes.push(format!("{}: the trace lost {lost} events.", place.name));
    }
    Ok(contest)
}

/// Creates the file of a mode, writes all passes and removes the file.
pub(crate) fn measure_passes(
    place: &TargetFs,
    cell: &Cell,
    mut limits: Limits,
    tracing: Option<&Tracing>,
    watcher: &dyn Watcher,
) -> Result<Vec<Outcome<Pass>>> {
    let Some(mut prepared) = prepare(place, cell, limits.records)? else {
        let skipped = |_| Outcome::Skipped("not supported".to_owned());
        return Ok((0..PASSES).map(skipped).collect());
    };
    let mut passes = Vec::new();
    for _ in 0..PASSES {
        let pass = pass(place, cell, &mut prepared, limits, tracing, watcher)?;
        limits.records = pass.records;
        passes.push(Outcome::Measured(pass));
        finish(place, &prepared)?;
    }
    drop::<Prepared>(prepared);
    remove(place)?;
    Ok(passes)
}
