//! The volumes' address space: each volume has a range in a 46-bit byte address space, so that a
//! needle's position fits into 43 bits. Pure.

use std::collections::{BTreeMap, HashMap};

use haul_append_log::{Lsn, Position};

use crate::index::locations::VALUE_BITS;
use crate::object::ObjectLocation;

/// The unit of addresses: records start at multiples of 8 bytes.
const UNIT_BYTES: u64 = 8;

const ADDRESS_BITS: u32 = 43;

const CLASS_BITS: u32 = 3;

const _: () = assert!(ADDRESS_BITS + CLASS_BITS == VALUE_BITS);

/// The maximum total length of all volumes: 64 TiB.
pub(crate) const ADDRESSABLE_BYTES: u64 = UNIT_BYTES << ADDRESS_BITS;

/// Upper bounds of the record length classes, in bytes: powers of two with space for a needle's
/// head. A record is read with one request of at most twice its length. Longer records than these
/// belong to the last class, and are read with two requests.
const CLASS_BYTES: [u32; 8] = [
    1024,
    (4 << 10) + HEAD_BYTES,
    (8 << 10) + HEAD_BYTES,
    (16 << 10) + HEAD_BYTES,
    (32 << 10) + HEAD_BYTES,
    (64 << 10) + HEAD_BYTES,
    (128 << 10) + HEAD_BYTES,
    (256 << 10) + HEAD_BYTES,
];

/// The space for a needle's head in a length class.
const HEAD_BYTES: u32 = 512;

/// A needle's location as the location table stores it: the record's address (43 bits) above its
/// length class (3 bits), so that low addresses make small numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location(pub(crate) u64);

/// A record that may contain a key's needle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) lsn: Lsn,
    /// A length that suffices for most records of the class.
    pub(crate) bytes_hint: u32,
}

/// The records that may contain a key's needle. A single candidate, the usual case, needs no
/// allocation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidates {
    first: Option<Candidate>,
    others: Vec<Candidate>,
}

impl Candidates {
    pub(crate) fn first(&self) -> Option<Candidate> {
        self.first
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Candidate> {
        self.first.into_iter().chain(self.others.iter().copied())
    }
}

impl FromIterator<Candidate> for Candidates {
    fn from_iter<I: IntoIterator<Item = Candidate>>(candidates: I) -> Self {
        let mut candidates = candidates.into_iter();
        Self { first: candidates.next(), others: candidates.collect() }
    }
}

impl Candidate {
    /// Returns `true` for a record in the last class, which has no upper bound.
    pub(crate) fn is_long(self) -> bool {
        self.bytes_hint == CLASS_BYTES[CLASS_BYTES.len() - 1]
    }
}

/// A volume's address range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressRange {
    pub(crate) volume: u32,
    /// The first address, in bytes.
    pub(crate) base: u64,
    pub(crate) bytes: u64,
}

/// The address ranges of all volumes that contain needles.
#[derive(Debug, Clone, Default)]
pub(crate) struct Addresses {
    by_base: BTreeMap<u64, AddressRange>,
    by_volume: HashMap<u32, AddressRange>,
    used_bytes: u64,
    /// Lengths of volumes that have no range yet.
    announced: HashMap<u32, u64>,
    /// The length assumed for a volume whose length was not announced.
    default_bytes: u64,
}

impl From<Position> for ObjectLocation {
    fn from(at: Position) -> Self {
        let bytes_hint = CLASS_BYTES[class(at.payload_bytes)];
        Self { lsn: at.lsn, bytes_hint, member: 0 }
    }
}

/// Returns a record's length class.
fn class(payload_bytes: u32) -> usize {
    let class = CLASS_BYTES.iter().position(|bound| payload_bytes <= *bound);
    class.unwrap_or(CLASS_BYTES.len() - 1)
}

impl Location {
    fn new(address: u64, payload_bytes: u32) -> Self {
        debug_assert!(address.is_multiple_of(UNIT_BYTES) && address < ADDRESSABLE_BYTES);
        Self(((address / UNIT_BYTES) << CLASS_BITS) | class(payload_bytes) as u64)
    }

    fn address(self) -> u64 {
        (self.0 >> CLASS_BITS) * UNIT_BYTES
    }

    fn bytes_hint(self) -> u32 {
        CLASS_BYTES[(self.0 % (1 << CLASS_BITS)) as usize]
    }
}

impl Addresses {
    /// Returns an empty address space; `volume_bytes` is the length of new volumes.
    pub(crate) fn new(volume_bytes: u64) -> Self {
        Self { default_bytes: volume_bytes.next_multiple_of(4096), ..Self::default() }
    }

    /// Records the length of a volume's file, which is used when the volume gets its range.
    pub(crate) fn announce(&mut self, volume: u32, bytes: u64) {
        if !self.by_volume.contains_key(&volume) {
            self.announced.insert(volume, bytes.next_multiple_of(UNIT_BYTES));
        }
    }

    /// Restores a previously assigned range. Returns `false` if it overlaps another one.
    pub(crate) fn restore(&mut self, range: AddressRange) -> bool {
        let end = range.base.saturating_add(range.bytes);
        let before = self.by_base.range(..end).next_back();
        let is_free = before.is_none_or(|(_, other)| other.base + other.bytes <= range.base);
        if !is_free || end > ADDRESSABLE_BYTES || self.by_volume.contains_key(&range.volume) {
            return false;
        }
        self.insert(range);
        true
    }

    fn insert(&mut self, range: AddressRange) {
        debug_assert_eq!(range.base % UNIT_BYTES, 0);
        debug_assert!(range.bytes > 0 && range.base + range.bytes <= ADDRESSABLE_BYTES);
        debug_assert!(!self.by_volume.contains_key(&range.volume));
        debug_assert!(
            self.by_base
                .range(..range.base + range.bytes)
                .next_back()
                .is_none_or(|(_, other)| other.base + other.bytes <= range.base),
            "two volumes share addresses"
        );
        self.used_bytes += range.bytes;
        self.by_base.insert(range.base, range);
        self.by_volume.insert(range.volume, range);
    }

    /// Returns the location of a record. Assigns a range to its volume if it has none. `None` if
    /// the address space is exhausted.
    pub(crate) fn assign(&mut self, at: Position) -> Option<Location> {
        let volume = at.lsn.segment();
        if !self.by_volume.contains_key(&volume) {
            let bytes = self.announced.remove(&volume).unwrap_or(self.default_bytes);
            let base = self.first_gap(bytes)?;
            self.insert(AddressRange { volume, base, bytes });
        }
        self.locate(at)
    }

    /// Returns the first address that is followed by `bytes` unused bytes.
    fn first_gap(&self, bytes: u64) -> Option<u64> {
        let mut from = 0;
        for range in self.by_base.values() {
            if range.base - from >= bytes {
                return Some(from);
            }
            from = range.base + range.bytes;
        }
        (ADDRESSABLE_BYTES - from >= bytes).then_some(from)
    }

    /// Returns the location of a record; `None` if its volume has no range.
    pub(crate) fn locate(&self, at: Position) -> Option<Location> {
        let range = self.by_volume.get(&at.lsn.segment())?;
        let offset = u64::from(at.lsn.offset());
        (offset < range.bytes).then(|| Location::new(range.base + offset, at.payload_bytes))
    }

    /// Returns the record at a location; `None` if no volume has this address.
    pub(crate) fn candidate(&self, location: Location) -> Option<Candidate> {
        let address = location.address();
        let (_, range) = self.by_base.range(..=address).next_back()?;
        let offset = u32::try_from(address - range.base).ok()?;
        let is_inside = u64::from(offset) < range.bytes;
        let lsn = Lsn::new(range.volume, offset);
        is_inside.then(|| Candidate { lsn, bytes_hint: location.bytes_hint() })
    }

    /// Releases a removed volume's range.
    pub(crate) fn release(&mut self, volume: u32) {
        self.announced.remove(&volume);
        if let Some(range) = self.by_volume.remove(&volume) {
            let by_base = self.by_base.remove(&range.base);
            debug_assert_eq!(by_base, Some(range), "both maps have the same ranges");
            debug_assert!(self.used_bytes >= range.bytes);
            self.used_bytes -= range.bytes;
        }
    }

    pub(crate) fn range(&self, volume: u32) -> Option<AddressRange> {
        self.by_volume.get(&volume).copied()
    }

    /// Returns the ranges in address order.
    #[cfg(test)]
    pub(crate) fn ranges(&self) -> impl Iterator<Item = AddressRange> {
        self.by_base.values().copied()
    }

    /// Returns `true` if there is no space for several more volumes.
    pub(crate) fn is_nearly_full(&self) -> bool {
        ADDRESSABLE_BYTES - self.used_bytes < 8 * self.default_bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(volume: u32, offset: u32, payload_bytes: u32) -> Position {
        Position { lsn: Lsn::new(volume, offset), payload_bytes }
    }

    #[test]
    fn record_is_found_at_its_location_with_a_sufficient_hint() {
        let mut addresses = Addresses::new(128 << 20);
        for (volume, offset, bytes) in
            [(7, 4096, 80), (7, 8192, 4200), (9, 4096, 65_700), (8, (128 << 20) - 8, 256 << 10)]
        {
            let location = addresses.assign(at(volume, offset, bytes)).unwrap();
            let found = addresses.candidate(location).unwrap();
            assert_eq!(found.lsn, Lsn::new(volume, offset));
            assert!(found.bytes_hint >= bytes && found.bytes_hint <= 2 * bytes.max(512) + 512);
            assert_eq!(addresses.locate(at(volume, offset, bytes)), Some(location));
        }
        assert_eq!(addresses.locate(at(10, 4096, 80)), None);
    }

    #[test]
    fn exhausted_address_space_gives_no_location() {
        let mut addresses = Addresses::new(16 << 40);
        for volume in 0..4 {
            assert!(addresses.assign(at(volume, 4096, 80)).is_some());
        }
        assert!(addresses.is_nearly_full());
        assert_eq!(addresses.assign(at(4, 4096, 80)), None);
        addresses.release(2);
        assert!(addresses.assign(at(4, 4096, 80)).is_some());
        let ranges: Vec<u32> = addresses.ranges().map(|range| range.volume).collect();
        assert_eq!(ranges, [0, 1, 4, 3]);
    }

    proptest! {
        #[test]
        fn ranges_never_overlap_and_can_be_restored(
            steps in prop::collection::vec((0_u32..12, 1_u64..40, any::<bool>()), 0..60),
        ) {
            let mut addresses = Addresses::new(4096);
            for (volume, pages, releases) in steps {
                if releases {
                    addresses.release(volume);
                } else {
                    addresses.announce(volume, pages * 4096);
                    prop_assert!(addresses.assign(at(volume, 0, 80)).is_some());
                }
                let ranges: Vec<AddressRange> = addresses.ranges().collect();
                prop_assert!(ranges.windows(2).all(|w| w[0].base + w[0].bytes <= w[1].base));
                let mut restored = Addresses::new(4096);
                for range in &ranges {
                    prop_assert!(restored.restore(*range));
                    prop_assert!(!restored.restore(*range));
                }
            }
        }
    }
}
