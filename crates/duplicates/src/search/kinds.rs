//! What kind of device the files are on, before it is planned what is read of them.

use std::ops::ControlFlow;

use haul_bulk_read::{
    Consumer, Decided, Error as ReadError, Finished, Kind, Opened, ReadOptions, ReadStats, Tree,
    Want,
};

use super::candidates::Candidates;

/// With fewer files than this no plan is much better than another.
const CONTENTS_MIN: u32 = 256;
/// How many files are looked at, and how much of each.
const LOOKS: u32 = 32;
const LOOK_BYTES: u64 = 4096;

struct Nothing;

impl Consumer for Nothing {
    type State = ();

    fn begin(&self, _want: usize, _opened: &Opened) {}

    fn piece(&self, _state: &mut (), _want: usize, _bytes: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    // What fails here fails again when it is read, and is told then.
    fn end(&self, _state: Option<()>, _want: usize, _outcome: Result<Finished, ReadError>) {}
}

/// The kind of all devices the candidates are on, when a few reads tell: nothing where they are
/// in memory, or of several kinds.
pub(super) fn look(
    tree: &Tree,
    candidates: &Candidates,
    options: &ReadOptions<'_>,
) -> Option<Kind> {
    if options.kind.is_some() || candidates.len() < CONTENTS_MIN {
        return options.kind;
    }
    let step = usize::try_from(candidates.len() / LOOKS).unwrap_or(usize::MAX);
    let wants: Vec<_> = (0..candidates.len())
        .step_by(step)
        .map(|content| Want { file: candidates.file(content), offset: 0, bytes: LOOK_BYTES })
        .collect();
    let ReadStats { devices, .. } = haul_bulk_read::read(tree, &wants, options, &Nothing);
    let kind = devices.first()?.kind;
    let is_sure =
        devices.iter().all(|device| device.kind == kind && device.decided != Decided::Unmeasured);
    is_sure.then_some(kind)
}
