//! Determines the objects of the benchmarks: their keys and bytes.

/// Returns the key of the object with this number. All targets and rivals use the same keys.
#[must_use]
pub fn key(number: u64) -> String {
    format!("files/{number:010}")
}

/// The length in bytes of a [`user_key`].
pub(super) const USER_KEY_BYTES: u64 = 41;

/// Returns the key of the object with this number in a bucket of many directories. The order of the
/// keys has nothing to do with that of the numbers, as if the names were random.
pub(super) fn user_key(number: u64) -> String {
    let high = mix(number);
    format!("user/{:03x}/{high:016x}{:016x}", mix(!number) & 0xfff, mix(high))
}

/// Returns a different number for each number, without visible order.
///
/// # Source
/// \[Steele14\]: the finalizer of SplitMix64.
pub(super) fn mix(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Objects of the same bytes, but for their number, with which each begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbered<'a> {
    /// Returns the key of an object.
    pub(crate) key: fn(u64) -> String,
    /// The bytes of an object, at least 8; its number replaces the first 8.
    pub(crate) content: &'a [u8],
}

impl Numbered<'_> {
    /// Returns the bytes of an object; `buffer` is empty, or has the bytes of another object.
    pub(crate) fn bytes<'a>(&self, number: u64, buffer: &'a mut Vec<u8>) -> &'a [u8] {
        if buffer.is_empty() {
            buffer.extend_from_slice(self.content);
        }
        buffer[..8].copy_from_slice(&number.to_le_bytes());
        buffer
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn user_keys_are_distinct_and_equally_long() {
        let keys: BTreeSet<_> = (0..10_000).map(user_key).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().all(|key| key.len() as u64 == USER_KEY_BYTES));
        let directories: BTreeSet<_> = keys.iter().map(|key| &key[..9]).collect();
        assert!(directories.len() > 3000, "{}", directories.len());
    }

    #[test]
    fn object_begins_with_its_number() {
        let objects = Numbered { key, content: b"0123456789" };
        let mut buffer = Vec::new();
        assert_eq!(objects.bytes(1, &mut buffer), b"\x01\0\0\0\0\0\0\089");
        assert_eq!(objects.bytes(2, &mut buffer), b"\x02\0\0\0\0\0\0\089");
    }
}
