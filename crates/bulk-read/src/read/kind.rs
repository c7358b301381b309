//! What kind of device it is, as far as the order of reads goes. Pure.
//!
//! The kernel's flag is believed when it says that nothing rotates. When it says that something
//! does, it may be a virtual disk that never thought about it; then a few reads decide.

/// How a device likes to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It serves many requests at once, wherever they lie.
    Solid,
    /// It has an arm to move: one request after the other, in the order they lie.
    Rotating,
}

/// Why a device was taken for its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decided {
    /// The caller said so.
    Given,
    /// The kernel's flag says so, or there is no device that could rotate.
    Flag,
    /// The flag says it rotates, and a few reads said what it is.
    Measured {
        /// The median of a read alone, in microseconds.
        alone_us: u64,
        /// What a read took on the average with eight under way, in microseconds; 0 where that
        /// was not tried.
        together_us: u64,
    },
    /// The flag says it rotates, and nothing had to be read from it that would tell more.
    Unmeasured,
}

/// How one device was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceRead {
    /// The kernel's name of the disk, such as `sda`; where there is none, of the file system.
    pub name: String,
    /// What it was taken for.
    pub kind: Kind,
    /// And why.
    pub decided: Decided,
    /// How many threads read from it.
    pub threads: usize,
    /// How many wants were not in memory, so that the device was asked.
    pub cold: u64,
}

/// How many reads tell the kind: some alone, then more together. Each costs a disk a seek.
pub(super) const ALONE: usize = 4;
pub(super) const TOGETHER: usize = 8;

/// Samples nearer together than this may all be in the memory of the drive.
pub(super) const SPAN_BYTES_MIN: u64 = 16 << 20;

/// An arm that moves and a revolution that is waited for take longer than this.
const ARM_US: u64 = 1000;

/// Eight requests at once help a drive with one arm not even twofold; this is more.
const GAIN: u64 = 4;

/// What reads of `alone_us` each, and `together` on the average with many under way, say.
pub(super) fn verdict(mut alone_us: Vec<u64>, together_us: Option<u64>) -> (Kind, Decided) {
    alone_us.sort_unstable();
    let alone = alone_us.get(alone_us.len() / 2).copied().unwrap_or(u64::MAX);
    let gains = together_us.is_some_and(|together| alone / GAIN >= together.max(1));
    let kind = if alone < ARM_US || gains { Kind::Solid } else { Kind::Rotating };
    (kind, Decided::Measured { alone_us: alone, together_us: together_us.unwrap_or(0) })
}

/// `count` places spread evenly over the bytes of all items: which item, and how far in it. From
/// the last to the first, against the way a drive reads ahead.
pub(super) fn samples(
    lengths: impl Iterator<Item = u64> + Clone,
    count: usize,
) -> Vec<(usize, u64)> {
    // However small, a file is a place to go to.
    const BYTES_MIN: u64 = 4096;
    let weight = |bytes: u64| bytes.max(BYTES_MIN);
    let total = lengths.clone().map(weight).fold(0, u64::saturating_add);
    let mut samples: Vec<(usize, u64)> = Vec::with_capacity(count);
    let (mut items, mut before) = (lengths.enumerate().peekable(), 0_u64);
    for number in 0..count as u64 {
        let at = u64::try_from(u128::from(total) * u128::from(number) / count.max(1) as u128);
        let at = at.unwrap_or(u64::MAX);
        while let Some((_, bytes)) = items.next_if(|(_, bytes)| before + weight(*bytes) <= at) {
            before += weight(bytes);
        }
        let Some((index, bytes)) = items.peek().copied() else { break };
        let within = (at - before) / BYTES_MIN * BYTES_MIN;
        let is_new = samples.last() != Some(&(index, within));
        if bytes > 0 && is_new {
            samples.push((index, within));
        }
    }
    samples.reverse();
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(alone_us: &[u64], together_us: Option<u64>) -> Kind {
        verdict(alone_us.to_vec(), together_us).0
    }

    #[test]
    fn what_answers_at_once_or_many_at_a_time_has_no_arm() {
        for (alone_us, together_us, expected, why) in [
            (&[90, 80, 120, 95][..], Some(20), Kind::Solid, "a solid-state disk"),
            (&[300, 250, 9000, 310], Some(60), Kind::Solid, "a virtual one, once interrupted"),
            (&[300, 250, 310], None, Kind::Solid, "where many at once cannot be tried"),
            (&[5000, 5200, 4900], Some(400), Kind::Solid, "far away, and wide"),
            (&[12_000, 9000, 15_000, 200], Some(6000), Kind::Rotating, "an arm"),
            (&[12_000, 9000, 15_000], Some(4000), Kind::Rotating, "an arm that reorders well"),
            (&[12_000, 9000, 15_000], None, Kind::Rotating, "slow, and nothing more known"),
            (&[], None, Kind::Rotating, "nothing known"),
        ] {
            assert_eq!(kind(alone_us, together_us), expected, "{why}");
        }
        let (_, decided) = verdict(vec![3, 1, 2], Some(1));
        assert_eq!(decided, Decided::Measured { alone_us: 2, together_us: 1 });
    }

    #[test]
    fn samples_are_spread_over_all_bytes_from_the_end() {
        let samples = |all: &[u64]| samples(all.iter().copied(), 4);
        let places: Vec<_> = samples(&[4096; 100]).iter().map(|sample| sample.0).collect();
        assert_eq!(places, [75, 50, 25, 0]);
        assert_eq!(samples(&[1 << 20]), [(0, 786_432), (0, 524_288), (0, 262_144), (0, 0)]);
        assert_eq!(samples(&[10]), [(0, 0)], "each place once");
        assert_eq!(samples(&[0; 9]), [], "nothing to read");
        assert_eq!(samples(&[]), []);
    }
}
