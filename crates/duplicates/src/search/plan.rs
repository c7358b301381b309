//! Which pieces of files of one length are read, round after round. Pure.
//!
//! Small files are read whole, once. Of bigger ones the head, the tail and samples between come
//! first: a stretch of a sixteenth of the file that differs is sure to be met. What is equal until
//! then is read from the beginning in pieces that grow eightfold, and after each piece nobody reads
//! on in a file that has become unlike all others.

/// The bytes of a sample, and of head and tail where nobody says otherwise.
const SAMPLE_BYTES: u64 = 4096;
/// The first piece read in order; each next one ends eight times as far.
const FIRST_PART_BYTES: u64 = 1 << 20;
const PART_GROWTH: u64 = 8;

/// What is read of a file, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// All of it, at once.
    Whole,
    /// Some pieces: (offset, bytes).
    Samples(Vec<(u64, u64)>),
    /// The next bytes from the beginning on: (offset, bytes), and whether they are the last.
    Part(u64, u64, bool),
}

/// What the plan depends on beside the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Files up to this length are read whole.
    pub(crate) whole_bytes_max: u64,
    pub(crate) head_bytes: u64,
    pub(crate) tail_bytes: u64,
    /// One sample for so many bytes.
    pub(crate) bytes_per_sample: u64,
    pub(crate) samples_max: u64,
    /// The head is a round of its own: a seek is dear, and most files differ there.
    pub(crate) head_first: bool,
    /// What is equal in its samples is taken to be equal.
    pub(crate) skip_content: bool,
}

impl Plan {
    /// For devices where a read costs the same wherever it is.
    pub(crate) fn solid() -> Self {
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

    /// For disks, where going to another place costs as much as reading a MiB.
    pub(crate) fn rotating() -> Self {
        Self {
            whole_bytes_max: 1 << 20,
            head_bytes: 4 * SAMPLE_BYTES,
            tail_bytes: 4 * SAMPLE_BYTES,
            bytes_per_sample: 32 << 20,
            head_first: true,
            ..Self::solid()
        }
    }

    /// What the `round`th round reads, counted from 0; none when all is known.
    pub(crate) fn step(&self, bytes: u64, round: u32) -> Option<Step> {
        let ends = self.head_bytes.saturating_add(self.tail_bytes);
        if bytes <= self.whole_bytes_max.max(ends) {
            return (round == 0).then_some(Step::Whole);
        }
        let before_parts = if self.head_first { 2 } else { 1 };
        match round {
            0 if self.head_first => Some(Step::Samples(vec![(0, self.head_bytes)])),
            0 => Some(Step::Samples(self.all_samples(bytes))),
            // With the head once more, which is in memory: this round says all there is to say.
            1 if self.head_first => Some(Step::Samples(self.all_samples(bytes))),
            _ if self.skip_content => None,
            _ => part(bytes, round - before_parts),
        }
    }

    /// Whether `round` reads samples that [`Plan::fingerprint`] speaks for, and is the last to.
    pub(crate) fn is_last_sample(&self, bytes: u64, round: u32) -> bool {
        let is_samples = |round| matches!(self.step(bytes, round), Some(Step::Samples(_)));
        is_samples(round) && !is_samples(round + 1)
    }

    /// Equal for two plans whose samples are the same.
    pub(crate) fn fingerprint(&self) -> u32 {
        let Self { whole_bytes_max, head_bytes, tail_bytes, bytes_per_sample, samples_max, .. } =
            *self;
        [whole_bytes_max, head_bytes, tail_bytes, bytes_per_sample, samples_max]
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .chain([u8::from(self.head_first)])
            .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }

    /// The head, samples between head and tail, evenly, and the tail.
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
    // A rest that is not worth a round was read along with the part before.
    let is_rest = |at: u64| bytes - at < FIRST_PART_BYTES / 2;
    if from >= bytes || number > 0 && is_rest(from) {
        return None;
    }
    let to = end(number).min(bytes);
    let to = if is_rest(to) { bytes } else { to };
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
    fn small_files_are_read_whole_and_once() {
        for bytes in [0, 1, 64 << 10] {
            assert_eq!(steps(&Plan::solid(), bytes), [Step::Whole]);
        }
        assert_eq!(steps(&Plan::rotating(), 1 << 20), [Step::Whole]);
    }

    #[test]
    fn big_files_are_read_at_the_ends_then_between_then_in_growing_parts() {
        let (k, m) = (1 << 10, 1 << 20);
        assert_eq!(
            steps(&Plan::solid(), 100 * k),
            [Step::Samples(vec![(0, 4 * k), (96 * k, 4 * k)]), Step::Part(0, 100 * k, true)]
        );
        let big = steps(&Plan::solid(), 100 * m);
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
        let rotating = steps(&Plan::rotating(), 100 * m);
        assert_eq!(rotating[0], Step::Samples(vec![(0, 16 * k)]));
        assert!(matches!(&rotating[1], Step::Samples(samples) if samples.len() == 5));
    }

    #[test]
    fn a_head_or_tail_of_any_length_is_read_as_long_as_it_is_said_to_be() {
        let plan =
            Plan { head_bytes: 5_000_000, tail_bytes: 7, skip_content: true, ..Plan::solid() };
        assert_eq!(steps(&plan, 5_000_007), [Step::Whole]);
        let Step::Samples(samples) = &steps(&plan, 6_000_000)[0] else { panic!("no samples") };
        assert_eq!((samples[0], samples.last()), ((0, 5_000_000), Some(&(5_999_993, 7))));
        assert_eq!(steps(&plan, 6_000_000).len(), 1);
        let plan = Plan { tail_bytes: u64::MAX, ..plan };
        assert_eq!(steps(&plan, 1 << 40), [Step::Whole], "a tail longer than the file");
    }

    proptest! {
        #[test]
        fn every_byte_is_read_once_in_order_after_samples_that_lie_within(
            bytes in prop_oneof![0_u64..1 << 21, 0_u64..1 << 45],
            rotating: bool,
            head_bytes in 0_u64..1 << 22,
            tail_bytes in 0_u64..1 << 22,
        ) {
            let plan = if rotating { Plan::rotating() } else { Plan::solid() };
            let plan = Plan { head_bytes, tail_bytes, ..plan };
            let (mut at, mut is_over) = (0, bytes == 0);
            for step in steps(&plan, bytes) {
                match step {
                    Step::Whole => (at, is_over) = (bytes, true),
                    Step::Samples(samples) => {
                        prop_assert_eq!(at, 0);
                        prop_assert!(samples.len() <= 17);
                        let within = |(from, length): &(u64, u64)| from + length <= bytes;
                        prop_assert!(samples.iter().all(within), "{:?}", samples);
                    }
                    Step::Part(from, length, is_last) => {
                        prop_assert_eq!(from, at);
                        at += length;
                        is_over = is_last;
                    }
                }
            }
            prop_assert_eq!((at, is_over), (bytes, true));
            prop_assert!(steps(&plan, bytes).len() < 20);
        }

        #[test]
        fn a_stretch_of_a_sixteenth_that_differs_is_met(
            megabytes in 16_u64..100_000, at in 0_u64..1_000_000,
        ) {
            let bytes = megabytes << 20;
            let length = bytes / 15;
            let from = (bytes - length) / 1_000_000 * at;
            let Some(Step::Samples(samples)) = Plan::solid().step(bytes, 0) else { panic!("none") };
            let meets = |sample: &(u64, u64)| sample.0 < from + length && from < sample.0 + sample.1;
            prop_assert!(samples.iter().any(meets));
        }
    }
}
