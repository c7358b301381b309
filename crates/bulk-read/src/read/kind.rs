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
        /// What a read took on the average with eight under way, in microseconds; 0 where there
        /// was no need to try.
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

/// How many reads alone, and how many at once, it takes at most to tell the kind. Each costs a disk
/// a seek.
pub(super) const ALONE: usize = 3;
pub(super) const TOGETHER: usize = 8;

/// Samples nearer together than this may all be in the memory of the drive.
pub(super) const SPAN_BYTES_MIN: u64 = 16 << 20;

/// An arm that moves and a revolution that is waited for take longer than this.
const ARM_US: u64 = 1000;

/// Eight requests at once help a drive with one arm not even twofold; this is more.
const GAIN: u64 = 4;

/// What was just read comes from the memory of a drive so much faster than from its platters. From
/// far away it takes the way through the network again.
const AGAIN: u64 = 8;

/// What a few reads have told so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// How long each read of another place took, in microseconds.
    pub(super) alone_us: Vec<u64>,
    /// How long the last of them took once more.
    pub(super) again_us: Option<u64>,
    /// How long one of many at once took on the average.
    pub(super) together_us: Option<u64>,
}

/// What to do to know more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    ReadAlone,
    ReadAgain,
    ReadTogether,
    Known(Kind),
}

impl Seen {
    /// The next step: most devices are known after three reads, of which a disk with an arm has to
    /// seek for two.
    pub(super) fn next(&self) -> Next {
        let slow = self.alone_us.iter().filter(|us| **us >= ARM_US).count();
        let fast = self.alone_us.len() - slow;
        if fast >= 2 {
            return Next::Known(Kind::Solid);
        } else if slow < 2 {
            return Next::ReadAlone;
        }
        let Some(again_us) = self.again_us else { return Next::ReadAgain };
        if again_us <= self.median_us() / AGAIN {
            return Next::Known(Kind::Rotating);
        }
        let Some(together_us) = self.together_us else { return Next::ReadTogether };
        let gains = together_us.max(1) <= self.median_us() / GAIN;
        Next::Known(if gains { Kind::Solid } else { Kind::Rotating })
    }

    pub(super) fn decided(&self) -> Decided {
        Decided::Measured {
            alone_us: self.median_us(),
            together_us: self.together_us.unwrap_or_default(),
        }
    }

    fn median_us(&self) -> u64 {
        let mut sorted = self.alone_us.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
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

    /// What is decided where reads take so long, and how many were made.
    fn decide(alone_us: &[u64], again_us: u64, together_us: u64) -> (Kind, usize) {
        let mut seen = Seen::default();
        for reads in 0.. {
            match seen.next() {
                Next::Known(kind) => return (kind, reads),
                Next::ReadAlone => seen.alone_us.push(alone_us[seen.alone_us.len()]),
                Next::ReadAgain => seen.again_us = Some(again_us),
                Next::ReadTogether => seen.together_us = Some(together_us),
            }
        }
        unreachable!("it ends");
    }

    #[test]
    fn what_answers_at_once_or_many_at_a_time_has_no_arm() {
        for (alone_us, again_us, together_us, expected, why) in [
            (&[90, 80][..], 0, 0, (Kind::Solid, 2), "a solid-state disk"),
            (&[9000, 300, 310], 0, 0, (Kind::Solid, 3), "a virtual one, once interrupted"),
            (&[12_000, 9000], 150, 0, (Kind::Rotating, 3), "an arm"),
            (&[200, 12_000, 9000], 150, 0, (Kind::Rotating, 4), "one that knew a place already"),
            (&[5000, 5200], 900, 400, (Kind::Solid, 4), "far away, and wide"),
            (&[12_000, 9000], 8300, 4000, (Kind::Rotating, 4), "an arm without memory"),
        ] {
            assert_eq!(decide(alone_us, again_us, together_us), expected, "{why}");
        }
        let seen = Seen { alone_us: vec![3, 1, 2], ..Seen::default() };
        assert_eq!(seen.decided(), Decided::Measured { alone_us: 2, together_us: 0 });
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
