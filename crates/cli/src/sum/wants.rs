//! Which pieces of files are read for some sums, and which file each is of. Pure.

use haul_bulk_read::Want;
use haul_bulk_read::digest::Parts;

use super::hash::Job;

/// What is read for some jobs, in their order.
#[derive(Debug, Default)]
pub(super) struct Wants {
    pub(super) all: Vec<Want>,
    /// The jobs that take several: few, so that the others cost nothing here.
    several: Vec<Several>,
}

/// A job that takes `count` wants, the first of which is `want`.
#[derive(Debug, Clone, Copy)]
struct Several {
    job: usize,
    want: usize,
    count: usize,
}

impl Wants {
    /// What is read for `jobs`, of which each is of that many `bytes`.
    pub(super) fn of(jobs: &[Job], bytes: impl Fn(&Job) -> u64) -> Self {
        let mut wants = Self { all: Vec::with_capacity(jobs.len()), several: Vec::new() };
        for (number, job) in jobs.iter().enumerate() {
            wants.add(number, job, Parts::of(job.kind, bytes(job)));
        }
        wants
    }

    fn add(&mut self, number: usize, job: &Job, of: Parts) {
        let first = self.all.len();
        for part in 0..of.count() {
            let range = of.range(part);
            // The last one asks for all there is: of what has no length, or has grown, too.
            let is_last = part + 1 == of.count();
            let bytes = if is_last { u64::MAX } else { range.end - range.start };
            self.all.push(Want { file: job.file, offset: range.start, bytes });
        }
        let count = self.all.len() - first;
        if count > 1 {
            self.several.push(Several { job: number, want: first, count });
        }
    }

    /// The job a want is for, and which part of the file it is.
    pub(super) fn job(&self, want: usize) -> (usize, u64) {
        let after = self.several.partition_point(|several| several.want <= want);
        let Some(before) = after.checked_sub(1).map(|at| self.several[at]) else {
            return (want, 0);
        };
        let within = want - before.want;
        match within.checked_sub(before.count) {
            None => (before.job, within as u64),
            Some(beyond) => (before.job + 1 + beyond, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use haul_bulk_read::FileId;
    use haul_bulk_read::digest::HashKind;

    use super::*;

    const M: u64 = 1 << 20;

    #[test]
    fn every_want_finds_its_job_and_part() {
        for (lengths, expected) in [
            (&[][..], &[][..]),
            (&[0, 1, 4 * M], &[(0, 0), (1, 0), (2, 0)]),
            (&[9 * M], &[(0, 0), (0, 1), (0, 2)]),
            (
                &[1, 5 * M, 1, 1, 5 * M, 5 * M],
                &[(0, 0), (1, 0), (1, 1), (2, 0), (3, 0), (4, 0), (4, 1), (5, 0), (5, 1)],
            ),
        ] {
            let jobs: Vec<_> = (0..)
                .zip(lengths)
                .map(|(id, _)| Job { file: FileId(id), kind: HashKind::Blake3 })
                .collect();
            let wants = Wants::of(&jobs, |job| lengths[job.file.0 as usize]);
            let found: Vec<_> = (0..wants.all.len()).map(|want| wants.job(want)).collect();
            assert_eq!(found, expected, "{lengths:?}");
            for (want, (job, part)) in wants.all.iter().zip(&found) {
                let file = FileId(u32::try_from(*job).unwrap());
                assert_eq!((want.file, want.offset), (file, part * 4 * M));
            }
        }
    }

    #[test]
    fn hashes_that_are_chains_read_a_file_in_one_go() {
        let jobs = [Job { file: FileId(0), kind: HashKind::Sha256 }];
        assert_eq!(Wants::of(&jobs, |_| 100 * M).all, [Want::whole(FileId(0))]);
    }
}
