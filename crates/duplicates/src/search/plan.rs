//! Plans which pieces of a file each round of a search reads. Files of equal length have equal
//! plans. No I/O.
//!
//! Small files are read completely in one round. Of larger files, the head, the tail and samples
//! between them are read first. On a solid-state device these detect every differing range of 1
//! MiB, and in a file above 16 MiB every differing range of a sixteenth of the file. Files whose
//! samples are equal are read from the start in parts that grow eightfold. A file that differs from
//! all others is not read further.

/// The length of a sample in bytes, and the default length of head and tail.
const SAMPLE_BYTES: u64 = 4096;
/// The length of the first part, in bytes. Each following part ends at eight times its start.
const FIRST_PART_BYTES: u64 = 1 << 20;
const PART_GROWTH: u64 = 8;

/// The reads of a file in one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The whole file.
    Whole,
    /// Samples: (offset, bytes).
    Samples(Vec<(u64, u64)>),
    /// The next sequential part: its offset, its length in bytes, and `true` for the last part.
    Part(u64, u64, bool),
}

/// The parameters of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The maximum length in bytes of files that are read completely in one round.
    pub(crate) whole_bytes_max: u64,
    pub(crate) head_bytes: u64,
    pub(crate) tail_bytes: u64,
    /// The approximate distance between two samples, in bytes.
    pub(crate) bytes_per_sample: u64,
    pub(crate) samples_max: u64,
    /// `true` to read only the head in the first round. On a rotational disk this saves seeks to
    /// the other samples, because most files already differ in their heads.
    pub(crate) head_first: bool,
    /// `true` to treat files with equal samples as equal.
    pub(crate) skip_content: bool,
}

impl Plan {
    /// Returns the plan for devices on which random reads cost the same as sequential ones.
    pub(crate) fn solid_state() -> Self {
        Self {
            whole_bytes_max: 64 << 10,
            head_bytes: SAMPLE_BYTES,
            tail_bytes: SAMPLE_BYTES,
            bytes_per_sample: 1 << 20,
            samples_max: 15,
            head_first: false,
            skip_content: false,
        }
    }

    /// Returns the plan for rotational disks, on which a seek costs as much as reading about 1 MiB.
    pub(crate) fn rotational() -> Self {
        Self {
            whole_bytes_max: 1 << 20,
            head_bytes: 4 * SAMPLE_BYTES,
            tail_bytes: 4 * SAMPLE_BYTES,
            bytes_per_sample: 32 << 20,
            head_first: true,
            ..Self::solid_state()
        }
    }

    /// Returns the reads of `round`, counted from 0, for a file of `bytes` bytes. Returns `None` if
    /// earlier rounds have read everything.
    pub(crate) fn step(&self, bytes: u64, round: u32) -> Option<Step> {
        let ends = self.head_bytes.saturating_add(self.tail_bytes);
        if bytes <= self.whole_bytes_max.max(ends) {
            return (round == 0).then_some(Step::Whole);
        }
        let before_parts = if self.head_first { 2 } else { 1 };
        match round {
            0 if self.head_first => Some(Step::Samples(vec![(0, self.head_bytes)])),
            0 => Some(Step::Samples(self.all_samples(bytes))),
            // The head is read again, from the page cache, so that the digest of this round covers
            // all samples.
            1 if self.head_first => Some(Step::Samples(self.all_samples(bytes))),
            _ if self.skip_content => None,
            _ => part(bytes, round - before_parts),
        }
    }

    /// `true` if `round` is the last round with samples. Only the digest of that round is cached,
    /// and [`Plan::fingerprint`] identifies its samples.
    pub(crate) fn is_last_sample(&self, bytes: u64, round: u32) -> bool {
        let is_samples = |round| matches!(self.step(bytes, round), Some(Step::Samples(_)));
        is_samples(round) && !is_samples(round + 1)
    }

    /// Returns a hash (FNV-1a) of the parameters that determine the samples.
    pub(crate) fn fingerprint(&self) -> u32 {
        let Self { whole_bytes_max, head_bytes, tail_bytes, bytes_per_sample, samples_max, .. } =
            *self;
        [whole_bytes_max, head_bytes, tail_bytes, bytes_per_sample, samples_max]
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .chain([u8::from(self.head_first)])
            .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }

    /// Returns the head, evenly spaced samples, and the tail, each as (offset, bytes).
    fn all_samples(&self, bytes: u64) -> Vec<(u64, u64)> {
        let (from, to) = (self.head_bytes, bytes - self.tail_bytes);
        let count = (bytes / self.bytes_per_sample).min(self.samples_max);
        let gap = (to - from) / (count + 1);
        let at = |number: u64| (from + gap * number) / SAMPLE_BYTES * SAMPLE_BYTES;
        let sample =
            |number: u64| (at(number).max(from), SAMPLE_BYTES.min(to - at(number).max(from)));
        let between = (1..=count).map(sample);
        let all = std::iter::once((0, from)).chain(between).chain([(to, self.tail_bytes)]);
        all.filter(|piece| piece.1 > 0).collect()
    }
}

fn part(bytes: u64, number: u32) -> Option<Step> {
    let end = |number: u32| FIRST_PART_BYTES.saturating_mul(PART_GROWTH.saturating_pow(number));
    let from = number.checked_sub(1).map_or(0, end);
    // A remainder shorter than half of the first part is added to the previous part.
    let is_remainder = |at: u64| bytes - at < FIRST_PART_BYTES / 2;
    if from >= bytes || number > 0 && is_remainder(from) {
        return None;
    }
    let to = end(number).min(bytes);
    let to = if is_remainder(to) { bytes } else { to };
    Some(Step::Part(from, to - from, to == bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn steps(plan: &Plan, bytes: u64) -> Vec<Step> {
        (0..).map_while(|round| plan.step(bytes, round)).collect()
    }

    #[test]
    fn small_files_are_read_in_one_round() {
        for bytes in [0, 1, 64 << 10] {
            assert_eq!(steps(&Plan::solid_state(), bytes), [Step::Whole]);
        }
        assert_eq!(steps(&Plan::rotational(), 1 << 20), [Step::Whole]);
    }

    #[test]
    fn large_files_are_sampled_then_read_in_growing_parts() {
        let (k, m) = (1 << 10, 1 << 20);
        assert_eq!(
            steps(&Plan::solid_state(), 100 * k),
            [Step::Samples(vec![(0, 4 * k), (96 * k, 4 * k)]), Step::Part(0, 100 * k, true)]
        );
        let big = steps(&Plan::solid_state(), 100 * m);
        let Step::Samples(samples) = &big[0] else { panic!("no samples") };
        assert_eq!(samples.len(), 17);
        assert_eq!(
            big[1..],
            [
                Step::Part(0, m, false),
                Step::Part(m, 7 * m, false),
                Step::Part(8 * m, 56 * m, false),
                Step::Part(64 * m, 36 * m, true)
            ]
        );
        let rotational = steps(&Plan::rotational(), 100 * m);
        assert_eq!(rotational[0], Step::Samples(vec![(0, 16 * k)]));
        assert!(matches!(&rotational[1], Step::Samples(samples) if samples.len() == 5));
    }

    #[test]
    fn head_and_tail_lengths_are_honoured() {
        let plan = Plan {
            head_bytes: 5_000_000,
            tail_bytes: 7,
            skip_content: true,
            ..Plan::solid_state()
        };
        assert_eq!(steps(&plan, 5_000_007), [Step::Whole]);
        let Step::Samples(samples) = &steps(&plan, 6_000_000)[0] else { panic!("no samples") };
        assert_eq!((samples[0], samples.last()), ((0, 5_000_000), Some(&(5_999_993, 7))));
        assert_eq!(steps(&plan, 6_000_000).len(), 1);
        let plan = Plan { tail_bytes: u64::MAX, ..plan };
        assert_eq!(steps(&plan, 1 << 40), [Step::Whole], "a tail longer than the file");
    }

    proptest! {
        #[test]
        fn parts_cover_every_byte_once_in_order(
            bytes in prop_oneof![0_u64..1 << 21, 0_u64..1 << 45],
            rotational: bool,
            head_bytes in 0_u64..1 << 22,
            tail_bytes in 0_u64..1 << 22,
        ) {
            let plan = if rotational { Plan::rotational() } else { Plan::solid_state() };
            let plan = Plan { head_bytes, tail_bytes, ..plan };
            let (mut at, mut is_done) = (0, bytes == 0);
            for step in steps(&plan, bytes) {
                match step {
                    Step::Whole => (at, is_done) = (bytes, true),
                    Step::Samples(samples) => {
                        prop_assert_eq!(at, 0);
                        prop_assert!(samples.len() <= 17);
                        let within = |(from, length): &(u64, u64)| from + length <= bytes;
                        prop_assert!(samples.iter().all(within), "{:?}", samples);
                    }
                    Step::Part(from, length, is_last) => {
                        prop_assert_eq!(from, at);
                        at += length;
                        is_done = is_last;
                    }
                }
            }
            prop_assert_eq!((at, is_done), (bytes, true));
            prop_assert!(steps(&plan, bytes).len() < 20);
        }

        #[test]
        fn samples_detect_a_differing_sixteenth(
            megabytes in 16_u64..100_000, at in 0_u64..1_000_000,
        ) {
            let bytes = megabytes << 20;
            let length = bytes / 15;
            let from = (bytes - length) / 1_000_000 * at;
            let Some(Step::Samples(samples)) = Plan::solid_state().step(bytes, 0) else { panic!("none") };
            let overlaps = |sample: &(u64, u64)| sample.0 < from + length && from < sample.0 + sample.1;
            prop_assert!(samples.iter().any(overlaps));
        }
    }
}
