//! Detects by a few reads whether the files are on rotational or solid-state devices. The read plan
//! of the search depends on the result.

use std::ops::ControlFlow;

use haul_bulk_read::{
    Consumer, DeviceKind, Error as ReadError, FileStatus, KindSource, ReadOptions, ReadRequest,
    ReadStats, ReadSummary, Tree,
};

use super::candidates::Candidates;

/// The minimum number of contents (inodes) for which detection is worthwhile. For fewer contents,
/// the choice of the read plan makes little difference.
const CONTENTS_MIN: u32 = 256;
/// The number of files probed, and the number of bytes read from each.
const PROBES: u32 = 32;
const PROBE_BYTES: u64 = 4096;

struct Discard;

impl Consumer for Discard {
    type State = ();

    fn begin(&self, _request: usize, _file: &FileStatus) {}

    fn piece(&self, _state: &mut (), _request: usize, _bytes: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    // Errors are ignored: the search itself reports them when it reads the file.
    fn end(&self, _state: Option<()>, _request: usize, _outcome: Result<ReadSummary, ReadError>) {}
}

/// Detects the kind of the devices of the candidates by a few reads. Returns `None` if it cannot be
/// measured, for example because the files are cached, or if the devices differ in kind.
pub(super) fn detect(
    tree: &Tree,
    candidates: &Candidates,
    options: &ReadOptions<'_>,
) -> Option<DeviceKind> {
    if options.kind.is_some() || candidates.len() < CONTENTS_MIN {
        return options.kind;
    }
    let step = usize::try_from(candidates.len() / PROBES).unwrap_or(usize::MAX);
    let requests: Vec<_> = (0..candidates.len())
        .step_by(step)
        .map(|content| ReadRequest {
            file: candidates.file(content),
            offset: 0,
            bytes: PROBE_BYTES,
        })
        .collect();
    let ReadStats { devices, .. } = haul_bulk_read::read(tree, &requests, options, &Discard);
    let kind = devices.first()?.kind;
    let is_sure = devices
        .iter()
        .all(|device| device.kind == kind && device.kind_source != KindSource::Unmeasured);
    is_sure.then_some(kind)
}
