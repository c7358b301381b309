//! Reports to the operator that the store currently cannot do some work, for example on a full
//! disk.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_file_store::{OngoingFailure, WorkKind};

use crate::served::ServedStore;

/// The interval at which the store is checked.
const INTERVAL: Duration = Duration::from_secs(1);

/// The interval at which ongoing failures are logged again.
const REPEAT: Duration = Duration::from_secs(60);

/// Logs a kind of store work that fails: at once, once a minute while it fails, and when it works
/// again. Never returns.
pub(super) async fn watch(store: Arc<ServedStore>) -> Infallible {
    let mut log = TroubleLog::default();
    loop {
        tokio::time::sleep(INTERVAL).await;
        for line in log.lines(&store.load().ongoing_failures(), Instant::now()) {
            match line {
                Line::Fails(OngoingFailure { work, error, .. }) => {
                    tracing::error!(work = work.name(), error, "the store cannot work for now");
                }
                Line::Works(work) => {
                    tracing::info!(work = work.name(), "the store works again");
                }
            }
        }
    }
}

/// The failures that were logged.
#[derive(Debug, Default)]
struct TroubleLog {
    /// The time of the last line about each kind of failing work.
    last: BTreeMap<WorkKind, Instant>,
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Fails(OngoingFailure),
    Works(WorkKind),
}

impl TroubleLog {
    /// Returns the lines that are due.
    fn lines(&mut self, failures: &[OngoingFailure], now: Instant) -> Vec<Line> {
        let is_over = |work: &WorkKind| failures.iter().all(|failure| failure.work != *work);
        let over: Vec<WorkKind> = self.last.keys().copied().filter(is_over).collect();
        let mut lines = Vec::new();
        for work in over {
            self.last.remove(&work);
            lines.push(Line::Works(work));
        }
        for failure in failures {
            let last = self.last.get(&failure.work);
            if last.is_none_or(|last| now.saturating_duration_since(*last) >= REPEAT) {
                self.last.insert(failure.work, now);
                lines.push(Line::Fails(failure.clone()));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_logged_at_once_then_each_minute_and_when_it_is_over() {
        let (mut log, since) = (TroubleLog::default(), Instant::now());
        let failure = |work| {
            let (reason, error) = ("the disk is full".to_owned(), "/d is full".to_owned());
            OngoingFailure { work, reason, error, since }
        };
        let full = [failure(WorkKind::Changes)];
        let both = [failure(WorkKind::Changes), failure(WorkKind::Indexing)];
        let fails = |work| Line::Fails(failure(work));
        for (seconds, failures, expected) in [
            (0, &[][..], vec![]),
            (1, &full, vec![fails(WorkKind::Changes)]),
            (2, &full, vec![]),
            (60, &both, vec![fails(WorkKind::Indexing)]),
            (61, &both, vec![fails(WorkKind::Changes)]),
            (62, &full, vec![Line::Works(WorkKind::Indexing)]),
            (63, &[], vec![Line::Works(WorkKind::Changes)]),
            (64, &full, vec![fails(WorkKind::Changes)]),
        ] {
            assert_eq!(log.lines(failures, since + Duration::from_secs(seconds)), expected);
        }
    }
}
