//! Limits the reads that a sweep has in flight. No I/O.

/// The maximum number of reads in flight on a rotational device.
///
/// A drive serves the queued read that it reaches first. With few reads it has little choice, and
/// with many it leaves reads behind to which it must return.
pub(super) const DEPTH_ROTATIONAL: usize = 16;

/// The window of a sweep: once it is full, it stays closed until a quarter of it has completed. The
/// next reads are then submitted together, so that the kernel merges adjacent ones.
#[derive(Debug)]
pub(super) struct Window {
    depth: usize,
    is_closed: bool,
}

impl Window {
    pub(super) fn new(depth: usize) -> Self {
        Self { depth, is_closed: false }
    }

    /// Returns `true` if another read may be submitted while `in_flight` reads are in flight.
    pub(super) fn is_open(&mut self, in_flight: usize) -> bool {
        let is_full = in_flight >= self.depth;
        self.is_closed = is_full || self.is_closed && in_flight > self.depth * 3 / 4;
        !self.is_closed
    }
}

#[cfg(test)]
mod tests {
    use haul_disk_sim::{Drive, Kind, Parameters, Request};
    use haul_testing::Random;

    use super::*;

    #[test]
    fn full_window_opens_after_a_quarter_has_completed() {
        let mut window = Window::new(16);
        let open = [0, 15, 16, 13, 12, 15, 16, 14].map(|in_flight| window.is_open(in_flight));
        assert_eq!(open, [true, true, false, false, true, true, false, false]);
        let mut single = Window::new(1);
        assert_eq!([0, 1, 0].map(|in_flight| single.is_open(in_flight)), [true, false, true]);
    }

    /// The gaps between files of an aged tree on ext4, in blocks of 8 sectors.
    const GAPS: [u64; 25] =
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 3, 3, 3, 3, 6, 6, 6, 6, 12, 12, 24, 48];

    /// Returns the time in which a drive serves `reads` (sector, sectors), submitted in this order.
    fn sweep_ns(parameters: &Parameters, reads: &[(u64, u64)], depth: usize) -> u64 {
        let mut drive = Drive::new(parameters.clone(), 8 << 30);
        let (mut window, mut waiting) = (Window::new(depth), Vec::new());
        let (mut left, mut now_ns) = (reads.iter(), 0);
        loop {
            while window.is_open(waiting.len())
                && let Some(&(sector, sectors)) = left.next()
            {
                let kind = Kind::Read;
                waiting.push(Request { kind, sector, sectors, arrived_ns: now_ns });
            }
            let Some(chosen) = drive.choose(&waiting) else { return now_ns };
            now_ns = drive.serve(&waiting.remove(chosen));
        }
    }

    #[test]
    fn default_depth_is_faster_than_many_reads_in_an_aged_tree() {
        for parameters in Parameters::all() {
            for seed in [1, 2, 3] {
                let mut random = Random(seed);
                let mut next = 0;
                let reads: Vec<_> = (0..3000)
                    .map(|_| {
                        let sectors = 8 << random.below(3);
                        let gap = GAPS.get(usize::try_from(random.below(25)).unwrap());
                        let sector = next + 8 * gap.unwrap();
                        next = sector + sectors;
                        (sector, sectors)
                    })
                    .collect();
                let [few, many] =
                    [DEPTH_ROTATIONAL, 128].map(|depth| sweep_ns(&parameters, &reads, depth));
                let name = parameters.name;
                assert!(few * 100 < many * 98, "{name}: {few} ns, 128 reads in flight {many} ns");
            }
        }
    }
}
