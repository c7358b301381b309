//! Creates and checks payloads that contain an id, so that every lost, duplicated or changed record
//! is detected.

use std::collections::BTreeMap;
use std::thread;

use haul_append_log::{Error, Log, Lsn, Position, SpacePriority};
use haul_testing::Random;

/// Returns the payload with this id and a length of `bytes` bytes, but at least 8.
pub(crate) fn payload(id: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random(id);
    // The pattern has no zero bytes, and neighbouring sectors differ, so a missing or misplaced
    // sector is detected.
    let pattern: Vec<u8> =
        (0..9).flat_map(|_| random.number().to_le_bytes()).map(|byte| byte | 1).collect();
    let mut payload = id.to_le_bytes().to_vec();
    payload.extend(pattern.repeat(bytes / pattern.len() + 1));
    payload.truncate(bytes.max(8));
    payload
}

/// Returns the id of a payload if all its bytes are correct.
pub(crate) fn id_of(bytes: &[u8]) -> Option<u64> {
    let id = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    (payload(id, bytes.len()) == bytes).then_some(id)
}

/// Asserts that every record is intact and unique, and returns them by id.
pub(crate) fn ids(records: &[(Position, Vec<u8>)]) -> BTreeMap<u64, Lsn> {
    let ids: BTreeMap<u64, Lsn> = records
        .iter()
        .map(|(at, payload)| (id_of(payload).expect("the payload is intact"), at.lsn))
        .collect();
    assert_eq!(ids.len(), records.len(), "a record is duplicated");
    ids
}

/// The outcome of a workload.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) acknowledged: BTreeMap<u64, Lsn>,
    pub(crate) errors: Vec<Error>,
}

/// The number of records that [`run`] appends.
pub(crate) const RECORDS: u64 = LONG + THREADS * EACH;
const LONG: u64 = 16;
const THREADS: u64 = 4;
const EACH: u64 = 16;

/// Nearly fills a segment of 1 MiB with long records. Then several threads append short records
/// across the end of the segment. Calls `acknowledged` for each acknowledged record.
pub(crate) fn run(log: &Log, first: u64, acknowledged: &(dyn Fn(u64, Lsn) + Sync)) -> Outcome {
    let put = |outcome: &mut Outcome, id: u64, bytes: usize| {
        let was_latched = log.is_latched();
        let ticket = log.append(&[&payload(id, bytes)], SpacePriority::Ordinary);
        match ticket.and_then(haul_append_log::Ticket::wait) {
            Ok(at) => {
                assert!(!was_latched, "a latched log accepted a record");
                acknowledged(id, at.lsn);
                outcome.acknowledged.insert(id, at.lsn);
            }
            Err(error) => {
                assert!(!was_latched || matches!(error, Error::Latched { .. }), "{error:?}");
                outcome.errors.push(error);
            }
        }
    };
    let mut all = Outcome::default();
    (0..LONG).for_each(|n| put(&mut all, first + n, 60_000));
    let outcomes = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let mut outcome = Outcome::default();
                    let mut random = Random(thread);
                    for n in 0..EACH {
                        let bytes = usize::try_from(8 + random.below(5000)).unwrap();
                        put(&mut outcome, first + LONG + thread * EACH + n, bytes);
                    }
                    outcome
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for outcome in outcomes {
        all.acknowledged.extend(outcome.acknowledged);
        all.errors.extend(outcome.errors);
    }
    all
}
