//! Splits pending steps into atoms: the parts that survive a power cut independently of each other.

use std::ops::Range;

use crate::memory::step::Step;

/// The atomic write unit in bytes.
const SECTOR_BYTES: u64 = 512;

/// A part of a pending step that survives a power cut as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Atom {
    /// The pending step's index.
    pub(crate) step: usize,
    pub(crate) part: Part,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// The whole pending step.
    Whole,
    /// A range of a write's bytes.
    Bytes(Range<usize>),
    /// The file's new length, if the step extends it.
    Length,
}

/// Splits the pending steps into atoms. If `is_torn`, writes are split into sectors. `lengths`
/// contains each file's durable length in bytes; if it is given, a step that extends a file also
/// has an atom for the new length.
pub(crate) fn atoms(pending: &[Step], is_torn: bool, lengths: Option<&[u64]>) -> Vec<Atom> {
    let mut atoms = Vec::new();
    let mut lengths = lengths.map(<[u64]>::to_vec);
    for (number, step) in pending.iter().enumerate() {
        let mut add = |part| atoms.push(Atom { step: number, part });
        if let (Some(lengths), Some(file)) = (&mut lengths, step.file()) {
            if step.end() > lengths[file] {
                add(Part::Length);
            }
            lengths[file] = match step {
                Step::Resize { bytes, .. } => *bytes,
                _ => lengths[file].max(step.end()),
            };
        }
        match step {
            Step::Write { offset, bytes, .. } if is_torn => {
                let mut from = 0;
                while from < bytes.0.len() {
                    let in_sector = (offset + from as u64) % SECTOR_BYTES;
                    let step = usize::try_from(SECTOR_BYTES - in_sector).unwrap_or(usize::MAX);
                    let to = from.saturating_add(step).min(bytes.0.len());
                    add(Part::Bytes(from..to));
                    from = to;
                }
            }
            _ => add(Part::Whole),
        }
    }
    atoms
}

/// Splits each pending write into sectors, and leaves the other pending steps whole.
pub(crate) fn torn_atoms(pending: &[Step]) -> Vec<Atom> {
    atoms(pending, true, None)
}
