//! Detects whether the files are on rotational or solid-state devices. The read plan of the search
//! depends on the result.

use haul_bulk_read::{DeviceKind, ReadOptions, Tree, device_kind};

use super::candidates::Candidates;

/// The minimum number of contents (inodes) for which detection is worthwhile. For fewer contents,
/// the choice of the read plan makes little difference.
const CONTENTS_MIN: u32 = 256;
/// The number of files among which the places of a measurement are chosen.
const FILES: u32 = 256;

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
    let step = usize::try_from(candidates.len() / FILES).unwrap_or(usize::MAX);
    let files = (0..candidates.len()).step_by(step).map(|content| candidates.file(content));
    device_kind(tree, files, options)
}
