//! The part checksums of a multipart object, and the object checksum computed from them. Pure.

use base64_simd::STANDARD as BASE64;
use crc_fast::{CrcAlgorithm, checksum_combine};
use haul_file_store::Attributes;

use crate::body::checksum::{Algorithm, Checksum, FULL_OBJECT};
use crate::body::hasher::Hasher;

/// The object attribute with the part checksums, separated by commas. They have the same algorithm
/// as the object's checksum. The attribute is missing if they exceed the store's limit.
pub(crate) const PARTS_ATTRIBUTE: &str = "x-haul-part-checksums";

/// The checksums of all parts, in part order.
pub(crate) struct PartChecksums<'a> {
    algorithm: Algorithm,
    values: Vec<&'a str>,
}

impl<'a> PartChecksums<'a> {
    /// Returns the checksums that are stored in these attributes.
    pub(crate) fn from_attributes(attributes: &'a Attributes) -> Option<Self> {
        let values = attributes.get(PARTS_ATTRIBUTE)?.split(',').collect();
        Some(Self { algorithm: Checksum::from_attributes(attributes)?.algorithm, values })
    }

    /// Returns the checksum of the part at `index`.
    pub(crate) fn get(&self, index: usize) -> Option<Checksum> {
        let value = (*self.values.get(index)?).to_owned();
        Some(Checksum { algorithm: self.algorithm, value })
    }
}

/// A part's length and checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartChecksum {
    pub(crate) bytes: u64,
    pub(crate) checksum: Checksum,
}

/// Adds the part checksums to the object's attributes.
pub(crate) fn set(attributes: &mut Attributes, parts: &[PartChecksum]) {
    let values: Vec<_> = parts.iter().map(|part| part.checksum.value.as_str()).collect();
    attributes.set(PARTS_ATTRIBUTE, values.join(","));
}

/// Returns the object's checksum with this type, computed from the parts' checksums, which share
/// one algorithm. `None` if there are no parts, if the algorithm does not have the type, or if a
/// part's checksum is malformed.
pub(crate) fn whole(kind: &str, parts: &[PartChecksum]) -> Option<Checksum> {
    let algorithm = parts.first()?.checksum.algorithm;
    if kind == FULL_OBJECT { combine(algorithm, parts) } else { compose(algorithm, parts) }
}

/// Returns the composite checksum: the checksum of the concatenated checksums.
fn compose(algorithm: Algorithm, parts: &[PartChecksum]) -> Option<Checksum> {
    let mut hasher = Hasher::new(algorithm);
    for part in parts {
        hasher.update(&BASE64.decode_to_vec(&part.checksum.value).ok()?);
    }
    let value = format!("{}-{}", hasher.finish().value, parts.len());
    Some(Checksum { algorithm, value })
}

/// Returns the checksum of the concatenated parts. CRCs are linear, so it can be computed from the
/// parts' CRCs.
fn combine(algorithm: Algorithm, parts: &[PartChecksum]) -> Option<Checksum> {
    let crc = match algorithm {
        Algorithm::Crc32 => CrcAlgorithm::Crc32IsoHdlc,
        Algorithm::Crc32c => CrcAlgorithm::Crc32Iscsi,
        Algorithm::Crc64Nvme => CrcAlgorithm::Crc64Nvme,
        _ => return None,
    };
    let mut whole: Option<u64> = None;
    for part in parts {
        let value = BASE64.decode_to_vec(&part.checksum.value).ok()?;
        let value = value.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        whole = Some(match whole {
            None => value,
            Some(before) => checksum_combine(crc, before, value, part.bytes),
        });
    }
    Some(Checksum::new(algorithm, &whole?.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::checksum::COMPOSITE;

    fn checksum(algorithm: Algorithm, bytes: &[u8]) -> Checksum {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    fn part(algorithm: Algorithm, content: &[u8]) -> PartChecksum {
        PartChecksum { bytes: content.len() as u64, checksum: checksum(algorithm, content) }
    }

    #[test]
    fn checksums_of_parts_round_trip_through_the_attribute() {
        let parts = [part(Algorithm::Crc32, b"a"), part(Algorithm::Crc32, b"b")];
        let mut attributes = Attributes::new();
        assert!(PartChecksums::from_attributes(&attributes).is_none());
        set(&mut attributes, &parts);
        attributes.set(Algorithm::Crc32.header(), "WgDhBQ==");
        let stored = PartChecksums::from_attributes(&attributes).unwrap();
        assert_eq!([stored.get(0), stored.get(1)], parts.map(|part| Some(part.checksum)));
        assert_eq!(stored.get(2), None);
    }

    #[test]
    fn combined_checksum_is_that_of_all_bytes() {
        let bytes: Vec<u8> = (0..10_000u32).map(|i| (i * 7 % 251) as u8).collect();
        for algorithm in Algorithm::ALL {
            let parts = [&bytes[..4000], &bytes[4000..4001], &bytes[4001..]];
            let found = whole(FULL_OBJECT, &parts.map(|content| part(algorithm, content)));
            let expected = algorithm.combines().then(|| checksum(algorithm, &bytes));
            assert_eq!(found, expected, "{algorithm:?}");
        }
    }

    #[test]
    fn composite_checksum_covers_the_part_checksums() {
        for algorithm in Algorithm::ALL {
            let parts = [part(algorithm, b"a"), part(algorithm, b"b")];
            let mut both = Vec::new();
            for part in &parts {
                both.extend(BASE64.decode_to_vec(&part.checksum.value).unwrap());
            }
            let expected = format!("{}-2", checksum(algorithm, &both).value);
            assert_eq!(whole(COMPOSITE, &parts).unwrap().value, expected, "{algorithm:?}");
        }
    }

    #[test]
    fn malformed_part_checksum_yields_none() {
        let checksum = Checksum { algorithm: Algorithm::Crc32, value: "?".into() };
        let part = PartChecksum { bytes: 1, checksum };
        assert_eq!(whole(COMPOSITE, std::slice::from_ref(&part)), None);
        assert_eq!(whole(FULL_OBJECT, &[part]), None);
    }
}
