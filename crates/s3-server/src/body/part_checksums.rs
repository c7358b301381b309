//! The checksums of the parts of an object that was uploaded in parts. Pure.

use haul_file_store::Attributes;

use crate::body::checksum::{Algorithm, Checksum};

/// The attribute of an object with the checksums of its parts, which are those of its own
/// algorithm, separated by commas. It is missing if there are too many for the limit of the store.
pub(crate) const PARTS_ATTRIBUTE: &str = "x-haul-part-checksums";

/// The checksums of all parts, in order.
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

/// Adds the checksums of parts to the attributes of the object.
pub(crate) fn set(attributes: &mut Attributes, parts: &[(u64, Checksum)]) {
    let values: Vec<_> = parts.iter().map(|(_, checksum)| checksum.value.as_str()).collect();
    attributes.set(PARTS_ATTRIBUTE, values.join(","));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_parts_round_trip_through_the_attribute() {
        let part =
            |value: &str| (1, Checksum { algorithm: Algorithm::Crc32, value: value.to_owned() });
        let parts = [part("JRTCyQ=="), part("QoZTGg==")];
        let mut attributes = Attributes::new();
        assert!(PartChecksums::from_attributes(&attributes).is_none());
        set(&mut attributes, &parts);
        attributes.set(Algorithm::Crc32.header(), "WgDhBQ==");
        let stored = PartChecksums::from_attributes(&attributes).unwrap();
        assert_eq!([stored.get(0), stored.get(1)], parts.map(|(_, checksum)| Some(checksum)));
        assert_eq!(stored.get(2), None);
    }
}
