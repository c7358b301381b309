//! The manifest format, which `FORMAT.md` describes. Pure.

use std::collections::BTreeMap;

use haul_append_log::Lsn;

use crate::format::{u32_at, u64_at};

const MAGIC: [u8; 8] = *b"HAUL-MAN";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 48;
const VOLUME_BYTES: usize = 16;
const LOSS_BYTES: usize = 16;
const FLAG_REBUILT: u32 = 1;

/// A copy consists of whole pages, so that a shorter one needs no new space.
const ALIGN: usize = 4096;

/// A volume range whose loss the operator has accepted: its keys are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AcceptedLoss {
    pub(crate) volume: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// The list of existing volumes, and the store state that the volumes do not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// A number that increases with each manifest.
    pub(crate) generation: u64,
    /// `true` if the manifest was lost and rebuilt from the volumes that were found. The loss of
    /// other volumes cannot be detected.
    pub(crate) is_rebuilt: bool,
    /// The volumes' nonces, by volume number.
    pub(crate) volumes: BTreeMap<u32, u64>,
    pub(crate) accepted: Vec<AcceptedLoss>,
    /// The minimum position of a checkpoint that may be used. Compaction removed volumes with
    /// tombstones that older checkpoints need.
    pub(crate) checkpoint_min: Lsn,
}

impl Manifest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; HEADER_BYTES];
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        out[..8].copy_from_slice(&MAGIC);
        out[12..16].copy_from_slice(&VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&self.generation.to_le_bytes());
        let flags = if self.is_rebuilt { FLAG_REBUILT } else { 0 };
        out[24..28].copy_from_slice(&flags.to_le_bytes());
        out[28..32].copy_from_slice(&count(self.volumes.len()).to_le_bytes());
        out[32..36].copy_from_slice(&count(self.accepted.len()).to_le_bytes());
        out[36..44].copy_from_slice(&self.checkpoint_min.0.to_le_bytes());
        // Bytes 44 to 47 are zero.
        for (number, nonce) in &self.volumes {
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&nonce.to_le_bytes());
        }
        for loss in &self.accepted {
            for number in [loss.volume, loss.from, loss.to, 0] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        let checksum = haul_crc::crc32c(&out[12..]);
        out[8..12].copy_from_slice(&checksum.to_le_bytes());
        out.resize(out.len().next_multiple_of(ALIGN), 0);
        out
    }

    /// Decodes a copy; `None` if it is damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        if header[..8] != MAGIC || u32_at(header, 12) != VERSION {
            return None;
        }
        let volumes_end =
            (u32_at(header, 28) as usize).checked_mul(VOLUME_BYTES)?.checked_add(HEADER_BYTES)?;
        let end =
            (u32_at(header, 32) as usize).checked_mul(LOSS_BYTES)?.checked_add(volumes_end)?;
        if haul_crc::crc32c(bytes.get(12..end)?) != u32_at(header, 8) {
            return None;
        }
        let volumes = bytes[HEADER_BYTES..volumes_end]
            .chunks_exact(VOLUME_BYTES)
            .map(|volume| (u32_at(volume, 0), u64_at(volume, 8)))
            .collect();
        let accepted = bytes[volumes_end..end]
            .chunks_exact(LOSS_BYTES)
            .map(|loss| AcceptedLoss {
                volume: u32_at(loss, 0),
                from: u32_at(loss, 4),
                to: u32_at(loss, 8),
            })
            .collect();
        let is_rebuilt = u32_at(header, 24) & FLAG_REBUILT != 0;
        let (generation, checkpoint_min) = (u64_at(header, 16), Lsn(u64_at(header, 36)));
        Some(Self { generation, is_rebuilt, volumes, accepted, checkpoint_min })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn manifest_round_trips_and_any_flipped_byte_invalidates_it() {
        let manifest = Manifest {
            generation: 7,
            is_rebuilt: true,
            volumes: BTreeMap::from([(1, 11), (5, u64::MAX)]),
            accepted: vec![AcceptedLoss { volume: 1, from: 4096, to: 8192 }],
            checkpoint_min: Lsn::new(3, 4096),
        };
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes), Some(manifest));
        for byte in 0..HEADER_BYTES + 2 * VOLUME_BYTES + LOSS_BYTES {
            let mut bad = bytes.clone();
            bad[byte] ^= 1;
            assert_eq!(Manifest::decode(&bad), None, "byte {byte}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = bytes;
            if bytes.len() >= HEADER_BYTES {
                bytes[..8].copy_from_slice(&MAGIC);
                bytes[12..16].copy_from_slice(&VERSION.to_le_bytes());
            }
            drop(Manifest::decode(&bytes));
        }
    }
}
