//! Plans the disk requests that read many records: in disk order, with neighbours in one request.
//! Performs no I/O.

use std::ops::Range;

use crate::format::RECORD_HEADER_BYTES;
use crate::record::RecordRequest;

/// The longest run of neighbouring records that is read with one request, unless a single record is
/// longer.
pub(crate) const RUN_BYTES_MAX: u32 = 256 << 10;

/// The longest gap between two records that one request reads along with them. Reading that many
/// bytes costs a solid-state disk about as much as another request, and a spinning disk far less.
const GAP_BYTES_MAX: u32 = 16 << 10;

/// A segment range that is read with one request, and the records in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    /// The indexes of these records' requests.
    pub(crate) requests: Range<usize>,
}

impl Run {
    /// Returns `true` if the run should be extended to a record between these offsets.
    fn accepts(&self, segment: u32, offset: u32, end: u32) -> bool {
        self.segment == segment
            && offset.saturating_sub(self.offset + self.bytes) <= GAP_BYTES_MAX
            && end - self.offset <= RUN_BYTES_MAX
    }
}

/// Sorts the requests by position, and returns the runs in which they are read.
pub(crate) fn plan(requests: &mut [RecordRequest]) -> Vec<Run> {
    requests.sort_unstable_by_key(|request| (request.lsn, request.tag));
    let mut runs: Vec<Run> = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        let (segment, offset) = (request.lsn.segment(), request.lsn.offset());
        let bytes = u32::try_from(RECORD_HEADER_BYTES).unwrap_or(u32::MAX);
        let end = offset.saturating_add(bytes).saturating_add(request.payload_bytes);
        match runs.last_mut() {
            Some(run) if run.accepts(segment, offset, end) => {
                run.bytes = run.bytes.max(end - run.offset);
                run.requests.end = number + 1;
            }
            _ => runs.push(Run {
                segment,
                offset,
                bytes: end - offset,
                requests: number..number + 1,
            }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lsn::Lsn;

    const HEADER: u32 = 32;

    fn requests(places: &[(u32, u32, u32)]) -> Vec<RecordRequest> {
        let request = |(tag, (segment, offset, payload_bytes)): (u64, &(u32, u32, u32))| {
            RecordRequest { lsn: Lsn::new(*segment, *offset), payload_bytes: *payload_bytes, tag }
        };
        (0..).zip(places).map(request).collect()
    }

    /// Returns each run as segment, offset, bytes and number of records.
    fn runs(places: &[(u32, u32, u32)]) -> Vec<(u32, u32, u32, usize)> {
        let runs = plan(&mut requests(places));
        runs.into_iter()
            .map(|run| (run.segment, run.offset, run.bytes, run.requests.len()))
            .collect()
    }

    #[test]
    fn neighbours_are_read_together() {
        assert_eq!(HEADER as usize, RECORD_HEADER_BYTES);
        let gap = GAP_BYTES_MAX;
        for (places, expected) in [
            (vec![], vec![]),
            (vec![(1, 4096, 100)], vec![(1, 4096, 100 + HEADER, 1)]),
            // Requests for the same record, in any order, and overlapping ones.
            (vec![(1, 8192, 100), (1, 4096, 5000), (1, 8192, 100)], vec![(1, 4096, 5032, 3)]),
            (vec![(1, 0, 968), (1, 1000 + gap, 8)], vec![(1, 0, 1040 + gap, 2)]),
            (vec![(1, 0, 968), (1, 1008 + gap, 8)], vec![(1, 0, 1000, 1), (1, 1008 + gap, 40, 1)]),
            (vec![(1, 0, 100), (2, 200, 100)], vec![(1, 0, 132, 1), (2, 200, 132, 1)]),
            // A long record alone may exceed a run's maximum.
            (vec![(1, 0, 1 << 20), (1, 8, 8)], vec![(1, 0, (1 << 20) + HEADER, 2)]),
            (
                vec![(1, 0, 200 << 10), (1, 200 << 10, 56 << 10)],
                vec![(1, 0, (200 << 10) + HEADER, 1), (1, 200 << 10, (56 << 10) + HEADER, 1)],
            ),
        ] {
            assert_eq!(runs(&places), expected, "{places:?}");
        }
    }

    proptest! {
        #[test]
        fn every_request_is_in_one_run_that_covers_it(
            places in prop::collection::vec((0_u32..3, 0_u32..100_000, 0_u32..300_000), 0..60),
        ) {
            let mut requests = requests(&places);
            let runs = plan(&mut requests);
            let mut next = 0;
            for run in &runs {
                prop_assert_eq!(run.requests.start, next);
                next = run.requests.end;
                let mut longest = 0;
                for request in &requests[run.requests.clone()] {
                    let (from, bytes) = (request.lsn.offset(), request.payload_bytes + HEADER);
                    prop_assert_eq!(request.lsn.segment(), run.segment);
                    prop_assert!(from >= run.offset);
                    prop_assert!(from + bytes <= run.offset + run.bytes);
                    longest = longest.max(bytes);
                }
                prop_assert!(run.bytes <= RUN_BYTES_MAX.max(longest));
            }
            prop_assert_eq!(next, requests.len());
            let is_sorted = |w: &[Run]| (w[0].segment, w[0].offset) < (w[1].segment, w[1].offset);
            prop_assert!(runs.windows(2).all(is_sorted));
        }
    }
}
