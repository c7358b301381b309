//! Computes pseudo-random bytes from their offset, so that a receiver can check any bytes without
//! a copy of the original. Performs no I/O.

/// An endless sequence of bytes, which is selected by this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content(pub(crate) u64);

impl Content {
    /// Returns the 64-bit number at `index`, computed with SplitMix64 \[Steele14\].
    pub(crate) fn number(self, index: u64) -> u64 {
        let at = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(index);
        let mixed = at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Fills `bytes` with the bytes of the sequence at `offset`.
    pub(crate) fn fill(self, offset: u64, bytes: &mut [u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let (word, from) = self.at(offset + at as u64);
            let take = (word.len() - from).min(bytes.len() - at);
            bytes[at..at + take].copy_from_slice(&word[from..from + take]);
            at += take;
        }
    }

    /// Compares `bytes` with the bytes of the sequence at `offset`; returns the index in `bytes` of
    /// the first wrong byte.
    pub(crate) fn mismatch(self, offset: u64, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let (word, from) = self.at(offset + at as u64);
            let take = (word.len() - from).min(bytes.len() - at);
            if bytes[at..at + take] != word[from..from + take] {
                let wrong = (0..take).find(|more| bytes[at + more] != word[from + more]);
                return wrong.map(|more| at + more);
            }
            at += take;
        }
        None
    }

    fn at(self, offset: u64) -> ([u8; 8], usize) {
        let from = usize::try_from(offset % 8).unwrap_or_default();
        (self.number(offset / 8).to_le_bytes(), from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_depend_on_the_offset_and_a_wrong_one_is_found() {
        let mut all = vec![0; 100];
        Content(7).fill(0, &mut all);
        for (from, to) in [(0, 100), (3, 11), (8, 9), (15, 16), (17, 99), (50, 50)] {
            let mut part = vec![0; to - from];
            Content(7).fill(from as u64, &mut part);
            assert_eq!(part, all[from..to]);
            assert_eq!(Content(7).mismatch(from as u64, &part), None);
            for wrong in 0..part.len() {
                let mut part = part.clone();
                part[wrong] ^= 1;
                assert_eq!(Content(7).mismatch(from as u64, &part), Some(wrong));
            }
        }
        for other in [Content(6), Content(8)] {
            assert!(other.mismatch(0, &all).is_some_and(|at| at < 2), "{other:?}");
        }
        assert!(Content(7).mismatch(8, &all[..16]).is_some_and(|at| at < 2), "another offset");
    }
}
