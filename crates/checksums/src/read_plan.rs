//! Plans which ranges of files to read for a set of jobs. The module reads no files.

use haul_bulk_read::ReadRequest;
use haul_bulk_read::digest::Parts;

use crate::job::Job;

/// The reads of a set of jobs, in the order of the jobs; a large file takes several reads.
#[derive(Debug, Default)]
pub(crate) struct ReadPlan {
    pub(crate) all: Vec<ReadRequest>,
    /// The jobs with several reads, in order. Most jobs have one read and need no entry.
    several: Vec<PartedJob>,
}

/// The reads of the job with the index `job`: `count` reads from the index `want` of the plan.
#[derive(Debug, Clone, Copy)]
struct PartedJob {
    job: usize,
    want: usize,
    count: usize,
}

impl ReadPlan {
    /// Plans the reads of `jobs`. `bytes` returns the length of the file of a job.
    pub(crate) fn of(jobs: &[Job], bytes: impl Fn(&Job) -> u64) -> Self {
        let mut plan = Self { all: Vec::with_capacity(jobs.len()), several: Vec::new() };
        for (number, job) in jobs.iter().enumerate() {
            plan.add(number, job, Parts::of(job.kind, bytes(job)));
        }
        plan
    }

    fn add(&mut self, number: usize, job: &Job, of: Parts) {
        let first = self.all.len();
        for part in 0..of.count() {
            let range = of.range(part);
            // The last read continues to the end of the file, even beyond the recorded length:
            // files of `/proc` report no length, and a file may have grown.
            let is_last = part + 1 == of.count();
            let bytes = if is_last { u64::MAX } else { range.end - range.start };
            self.all.push(ReadRequest { file: job.file, offset: range.start, bytes });
        }
        let count = self.all.len() - first;
        if count > 1 {
            self.several.push(PartedJob { job: number, want: first, count });
        }
    }

    /// Returns the index of the job to which a read belongs, and the index of the part of its file.
    pub(crate) fn job(&self, want: usize) -> (usize, u64) {
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
    fn each_read_maps_to_its_job_and_part() {
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
            let plan = ReadPlan::of(&jobs, |job| lengths[job.file.0 as usize]);
            let found: Vec<_> = (0..plan.all.len()).map(|want| plan.job(want)).collect();
            assert_eq!(found, expected, "{lengths:?}");
            for (want, (job, part)) in plan.all.iter().zip(&found) {
                let file = FileId(u32::try_from(*job).unwrap());
                assert_eq!((want.file, want.offset), (file, part * 4 * M));
            }
        }
    }

    #[test]
    fn sequential_hashes_read_a_file_at_once() {
        let jobs = [Job { file: FileId(0), kind: HashKind::Sha256 }];
        assert_eq!(ReadPlan::of(&jobs, |_| 100 * M).all, [ReadRequest::whole(FileId(0))]);
    }
}
