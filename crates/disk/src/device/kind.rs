//! Decides whether a device is rotational, which determines the request order. Performs no I/O.
//!
//! The kernel's `rotational` flag is trusted if it is 0. If the flag is 1, the device may be a
//! virtual disk that reports it wrongly; then a few timed reads decide.

use std::fmt;

/// A device kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// A device that serves many random requests concurrently.
    SolidState,
    /// A device that seeks: it is fastest if read and written in physical order.
    Rotational,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SolidState => "solid-state",
            Self::Rotational => "rotational",
        })
    }
}

/// How it is known whether a device is solid-state or rotational.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KindSource {
    /// The caller set the kind.
    Configured,
    /// The kernel's `rotational` flag is 0, or the file system has no block device.
    KernelFlag,
    /// Timed reads decided, because the kernel's flag is 1.
    Measured {
        /// The median time per single read, in microseconds.
        single_us: u64,
        /// The mean time per read among eight concurrent reads, in microseconds; 0 if they were not
        /// needed.
        concurrent_us: u64,
    },
    /// The kernel's flag is 1, and there were too few uncached files for a measurement.
    Unmeasured,
}

impl fmt::Display for KindSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Configured => f.write_str("configured"),
            Self::KernelFlag => f.write_str("from the kernel's rotational flag"),
            Self::Measured { single_us, concurrent_us: 0 } => {
                write!(f, "measured: {single_us} µs per read")
            }
            Self::Measured { single_us, concurrent_us } => {
                write!(f, "measured: {single_us} µs per read, {concurrent_us} µs if concurrent")
            }
            Self::Unmeasured => f.write_str("not measured: too few uncached files"),
        }
    }
}

/// The maximum number of single reads and concurrent reads in a measurement. Each read costs a
/// rotational disk one seek, but two single reads suffice for a disk that has a cache.
const SINGLE_READS: usize = 5;
pub(super) const CONCURRENT_READS: usize = 8;

/// The maximum number of places that [`measure_kind`](crate::measure_kind) reads, not counting
/// repetitions.
pub const KIND_SAMPLES: usize = SINGLE_READS + CONCURRENT_READS;

/// How many times a single read is repeated at most.
const REPEATS: usize = 16;

/// The minimum distance in bytes between the first and the last sample on the device. Samples
/// within a shorter range might all be in the drive's cache.
pub(super) const SPAN_BYTES_MIN: u64 = 16 << 20;

/// A lower bound for seek plus rotational latency, in microseconds.
const SEEK_US: u64 = 1000;

/// The minimum speedup for a repeated read at which a device counts as rotational. A rotational
/// disk answers the repetition from its cache; a network disk needs its round-trip time again.
const REPEAT_GAIN: u64 = 8;

/// The latencies measured so far.
///
/// A busy machine delays reads, and no read is faster than the device. The decision therefore uses
/// the fastest of several reads, and solid-state needs evidence that delays cannot produce.
#[derive(Debug, Clone, Default)]
pub(super) struct Measurements {
    /// Each single read's latency at a new place, in microseconds.
    pub(super) single_us: Vec<u64>,
    /// The latency of each repeated single read, in microseconds.
    pub(super) repeat_us: Vec<u64>,
    /// The time in which all concurrent reads completed, in microseconds.
    pub(super) concurrent_us: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    ReadSingle,
    RepeatLast,
    ReadConcurrently,
    Done(DeviceKind),
}

impl Measurements {
    /// Returns the next step. In doubt, the device counts as rotational, as its flag declares. A
    /// measurement mostly takes two reads on a solid-state device, and three reads on a rotational
    /// disk, two with a seek.
    pub(super) fn next_step(&self) -> Step {
        let slow = self.single_us.iter().filter(|us| **us >= SEEK_US).count();
        let fast = self.single_us.len() - slow;
        if fast >= 2 {
            return Step::Done(DeviceKind::SolidState);
        } else if slow < 2 {
            return Step::ReadSingle;
        }
        let single_us = min(self.single_us.iter().copied().filter(|us| *us >= SEEK_US));
        let repeat_us = min(self.repeat_us.iter().copied());
        if repeat_us <= single_us / REPEAT_GAIN {
            return Step::Done(DeviceKind::Rotational);
        } else if self.repeat_us.len() < REPEATS {
            return Step::RepeatLast;
        }
        let Some(concurrent_us) = self.concurrent_us else { return Step::ReadConcurrently };
        // More single reads after the concurrent ones show whether the earlier were delayed.
        if self.single_us.len() < SINGLE_READS {
            return Step::ReadSingle;
        }
        // A device without seeks serves all concurrent reads in little more time than one read. The
        // repetitions, which need no seek, bound the delay that is not due to the device.
        let is_concurrent = concurrent_us <= (single_us * 2).min(repeat_us.saturating_mul(4));
        Step::Done(if is_concurrent { DeviceKind::SolidState } else { DeviceKind::Rotational })
    }

    pub(super) fn source(&self) -> KindSource {
        KindSource::Measured {
            single_us: self.median_us(),
            concurrent_us: self.concurrent_us.filter(|us| *us != u64::MAX).unwrap_or_default()
                / CONCURRENT_READS as u64,
        }
    }

    fn median_us(&self) -> u64 {
        let mut sorted = self.single_us.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

fn min(latencies_us: impl Iterator<Item = u64>) -> u64 {
    latencies_us.min().unwrap_or(u64::MAX)
}

/// Returns up to `count` places as pairs of item index and offset within the item, spread evenly
/// over all items' bytes. The order is descending.
#[must_use]
pub fn sample_places(
    lengths: impl Iterator<Item = u64> + Clone,
    count: usize,
) -> Vec<(usize, u64)> {
    // A file shorter than a block counts as one block.
    const BLOCK_BYTES: u64 = 4096;
    let weight = |bytes: u64| bytes.max(BLOCK_BYTES);
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
        let within = (at - before) / BLOCK_BYTES * BLOCK_BYTES;
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
    use std::cell::RefCell;

    use haul_testing::Random;

    use super::*;

    #[test]
    fn kinds_and_their_sources_are_described() {
        assert_eq!(DeviceKind::Rotational.to_string(), "rotational");
        for (source, text) in [
            (KindSource::Configured, "configured"),
            (KindSource::Measured { single_us: 90, concurrent_us: 0 }, "measured: 90 µs per read"),
            (
                KindSource::Measured { single_us: 9000, concurrent_us: 400 },
                "measured: 9000 µs per read, 400 µs if concurrent",
            ),
        ] {
            assert_eq!(source.to_string(), text);
        }
    }

    /// A device that a measurement reads. Each method returns a latency in microseconds.
    struct Model<'a> {
        single: &'a mut dyn FnMut() -> u64,
        repeat: &'a mut dyn FnMut() -> u64,
        concurrent: &'a mut dyn FnMut() -> u64,
    }

    /// Returns the decision for a device and how many steps it took.
    fn decide(model: Model<'_>) -> (DeviceKind, usize) {
        let mut measured = Measurements::default();
        for steps in 0.. {
            match measured.next_step() {
                Step::Done(kind) => return (kind, steps),
                Step::ReadSingle => measured.single_us.push((model.single)()),
                Step::RepeatLast => measured.repeat_us.push((model.repeat)()),
                Step::ReadConcurrently => measured.concurrent_us = Some((model.concurrent)()),
            }
            assert!(measured.single_us.len() <= SINGLE_READS);
        }
        unreachable!("the steps are finite");
    }

    #[test]
    fn low_latency_or_concurrency_gain_means_solid_state() {
        let (solid, rotational) = (DeviceKind::SolidState, DeviceKind::Rotational);
        for (singles, repeat, concurrent, expected, why) in [
            (&[90, 80][..], 0, 0, (solid, 2), "solid-state disk"),
            (&[9000, 300, 310], 0, 0, (solid, 3), "virtual disk, one outlier"),
            (&[12_000, 9000], 150, 0, (rotational, 3), "hard disk"),
            (&[200, 12_000, 9000], 150, 0, (rotational, 4), "hard disk, one cached place"),
            (&[5000, 5200], 900, 3200, (solid, 22), "network disk with concurrency"),
            (&[12_000, 9000], 8300, 32_000, (rotational, 22), "hard disk without cache"),
        ] {
            let mut reads = singles.iter().copied().cycle();
            let model = Model {
                single: &mut || reads.next().unwrap(),
                repeat: &mut || repeat,
                concurrent: &mut || concurrent,
            };
            assert_eq!(decide(model), expected, "{why}");
        }
        let measured = Measurements { single_us: vec![3, 1, 2], ..Measurements::default() };
        assert_eq!(measured.source(), KindSource::Measured { single_us: 2, concurrent_us: 0 });
    }

    #[test]
    fn delays_never_make_a_rotational_disk_solid_state() {
        for seed in 1..5000 {
            let random = RefCell::new(Random(seed));
            let percent = random.borrow_mut().below(71);
            let max_us = 1 << random.borrow_mut().below(18);
            // The time for which a process waits for a CPU after its read has completed.
            let delay = || {
                let mut random = random.borrow_mut();
                if random.below(100) < percent { random.below(max_us) } else { 0 }
            };
            let seek = || 2000 + random.borrow_mut().below(20_000);
            let kind = decide(Model {
                single: &mut || seek() + delay(),
                repeat: &mut || 150 + delay(),
                // The drive serves the nearest of eight reads first.
                concurrent: &mut || (0..8).map(|_| 1000 + seek() / 2).sum::<u64>() + delay(),
            });
            assert_eq!(kind.0, DeviceKind::Rotational, "seed {seed}");
            let kind = decide(Model {
                single: &mut || seek() + delay(),
                repeat: &mut || seek() + delay(),
                concurrent: &mut || (0..8).map(|_| 1000 + seek() / 2).sum::<u64>() + delay(),
            });
            assert_eq!(kind.0, DeviceKind::Rotational, "without a cache, seed {seed}");
        }
    }

    #[test]
    fn rare_delays_do_not_hide_a_solid_state_disk() {
        for seed in 1..1000 {
            let random = RefCell::new(Random(seed));
            let delay = || {
                let mut random = random.borrow_mut();
                if random.below(100) < 5 { random.below(50_000) } else { 0 }
            };
            let mut delays = 0;
            let mut read = || {
                let delay = if delays == 1 { 0 } else { delay() };
                delays += usize::from(delay > 0);
                80 + delay
            };
            let kind =
                decide(Model { single: &mut read, repeat: &mut || 80, concurrent: &mut || 300 });
            assert_eq!(kind.0, DeviceKind::SolidState, "seed {seed}");
        }
    }

    #[test]
    fn samples_are_spread_over_all_bytes_in_descending_order() {
        let samples = |all: &[u64]| sample_places(all.iter().copied(), 4);
        let places: Vec<_> = samples(&[4096; 100]).iter().map(|sample| sample.0).collect();
        assert_eq!(places, [75, 50, 25, 0]);
        assert_eq!(samples(&[1 << 20]), [(0, 786_432), (0, 524_288), (0, 262_144), (0, 0)]);
        assert_eq!(samples(&[10]), [(0, 0)], "each place once");
        assert_eq!(samples(&[0; 9]), [], "nothing to read");
        assert_eq!(samples(&[]), []);
    }
}
