//! Who is measured under which load, round by round.

use std::time::Duration;

use haul_disk::Device;

use crate::error::{Error, Result, chain};
use crate::log::Options;
use crate::log::contender::{Contender, Failure};
use crate::log::drive::{Load, drive};
use crate::log::group::{Cell, GROWING, Group, OURS};
use crate::log::ours::Ours;
use crate::log::raw::{Raw, Way};
use crate::log::rivals::{FAMILIES, NOT_BUILT, Rivals};
use crate::log::sample::Sample;
use crate::log::scratch::Scratch;
use crate::rounds::turns;
use crate::watch::Watcher;

/// Files of this length are written and used again; those of rivals that let us choose too.
const SEGMENT_BYTES: u32 = 64 << 20;
/// The part of the measured time for which everybody writes before anything counts.
const SETTLE: u32 = 4;

/// Everything that stays the same in all rounds.
pub(crate) struct Plan<'a> {
    options: &'a Options,
    rivals: Option<Rivals>,
    device: Option<&'a Device>,
    scratch: &'a Scratch,
    watcher: &'a dyn Watcher,
}

/// Who is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Who {
    Ours,
    Raw(&'static str, Way),
    Rival(String),
}

impl Who {
    fn name(&self) -> &str {
        match self {
            Self::Ours => OURS,
            Self::Raw(name, _) => name,
            Self::Rival(form) => form,
        }
    }

    /// A plain file knows no better than one write after the other.
    fn writers(&self, writers: usize) -> usize {
        if let Self::Raw(..) = self { 1 } else { writers }
    }
}

impl<'a> Plan<'a> {
    pub(crate) fn new(
        options: &'a Options,
        rivals: Option<Rivals>,
        device: Option<&'a Device>,
        scratch: &'a Scratch,
        watcher: &'a dyn Watcher,
    ) -> Self {
        Self { options, rivals, device, scratch, watcher }
    }

    /// What must be known to read the table.
    pub(crate) fn notes(&self) -> Vec<String> {
        let Options { rounds, measure, .. } = self.options;
        let mut notes = vec![format!(
            "{rounds} rounds, {} ms each; rows are medians of the rounds that count; raw and \
             {GROWING} always with one writer; requests of the device are all there were, whoever \
             made them",
            measure.as_millis()
        )];
        if self.rivals.is_none() {
            notes.push(format!("rivals are {NOT_BUILT}"));
        }
        notes
    }

    /// Measures everything.
    pub(crate) fn groups(&self) -> Result<Vec<Group>> {
        let mut groups = Vec::new();
        for record_bytes in &self.options.record_bytes {
            for writers in &self.options.writers {
                groups.push(self.group(*writers, *record_bytes)?);
            }
        }
        Ok(groups)
    }

    /// Measures all under one load. For each round that is dropped there is one more, up to twice
    /// as many as were asked for.
    fn group(&self, writers: usize, record_bytes: usize) -> Result<Group> {
        let (all, wanted) = (self.all(), self.options.rounds);
        let cell = |who: &Who| Cell::of(who.name(), who.writers(writers));
        let cells = all.iter().map(cell).collect();
        let mut group = Group { writers, record_bytes, rounds: 0, cells };
        for turn in turns(wanted * 2, all.len()) {
            if turn.done % all.len() == 0 {
                group.rounds = turn.round;
                if turn.round >= wanted && group.kept().len() >= wanted {
                    break;
                }
            }
            let who = &all[turn.which];
            let what = format!("{record_bytes} bytes, {writers} writers: {}", who.name());
            self.watcher.check()?;
            self.watcher.step(turn.done.min(turn.of / 2), turn.of / 2, &what);
            let measured = self.measure(who, writers, record_bytes)?;
            let cell = &mut group.cells[turn.which];
            if let Err(failure) = &measured {
                cell.why.get_or_insert_with(|| chain(&**failure));
            }
            cell.samples.push(measured.ok());
            group.rounds = turn.round + 1;
        }
        let missing = |family: &&&str| !all.iter().any(|who| who.name() == **family);
        group.cells.extend(
            FAMILIES.iter().filter(missing).map(|family| Cell {
                why: Some(NOT_BUILT.to_owned()),
                ..Cell::of(family, writers)
            }),
        );
        Ok(group)
    }

    fn all(&self) -> Vec<Who> {
        let mut all = vec![
            Who::Ours,
            Who::Raw("raw/direct-fdatasync", Way::DirectThenSync),
            Who::Raw("raw/direct-dsync", Way::DirectDsync),
            Who::Raw(GROWING, Way::Growing),
        ];
        let forms = self.rivals.iter().flat_map(|rivals| &rivals.forms);
        // What is about pages is for another bench.
        let of_logs = |form: &&String| !form.starts_with("pages/");
        let wanted =
            |form: &&String| of_logs(form) && (self.options.all_forms || !form.contains('/'));
        all.extend(forms.filter(wanted).cloned().map(Who::Rival));
        all
    }

    /// Measures one in a directory of its own. The inner error is the contender's.
    fn measure(
        &self,
        who: &Who,
        writers: usize,
        record_bytes: usize,
    ) -> Result<Result<Sample, Failure>> {
        let scratch = Scratch::new(self.scratch.path(), "log")?;
        let measure = self.options.measure;
        let settle: Duration = measure / SETTLE;
        let load = Load { writers: who.writers(writers), record_bytes, settle, measure };
        let sample = match who {
            Who::Ours => {
                let ours = Ours::open(scratch.path(), SEGMENT_BYTES);
                let sample = ours.and_then(|(ours, _)| self.drive(&ours, &load));
                // Without ours there is nothing to compare.
                let why = std::io::Error::other;
                Ok(sample.map_err(|failure| Error::other("measure the log")(why(failure)))?)
            }
            Who::Raw(_, way) => Raw::open(scratch.path(), *way, record_bytes)
                .and_then(|raw| self.drive(&raw, &load)),
            Who::Rival(form) => self
                .rivals
                .as_ref()
                .ok_or_else(|| NOT_BUILT.into())
                .and_then(|it| it.measure(form, scratch.path(), &load, &[], self.watcher)),
        };
        Ok(sample)
    }

    fn drive(&self, contender: &dyn Contender, load: &Load) -> Result<Sample, Failure> {
        contender.warm_up()?;
        // What the warm-up left in the page cache is not written during the measurement.
        rustix::fs::sync();
        drive(contender, load, self.device)
    }
}
