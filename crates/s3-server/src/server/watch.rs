//! Tells the operator that the store cannot work for now, for example on a full disk.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_file_store::{Trouble, Work};

use crate::served::ServedStore;

/// How often the store is asked.
const INTERVAL: Duration = Duration::from_secs(1);

/// How often a line about work that still fails is logged.
const REPEAT: Duration = Duration::from_secs(60);

/// Logs that store work fails: at once, once a minute while it fails, and when it works again.
/// Never returns.
pub(super) async fn watch(store: Arc<ServedStore>) -> Infallible {
    let mut log = TroubleLog::default();
    loop {
        tokio::time::sleep(INTERVAL).await;
        for line in log.lines(&store.load().troubles(), Instant::now()) {
            match line {
                Line::Fails(Trouble { work, error, .. }) => {
                    tracing::error!(work = work.name(), error, "the store cannot work for now");
                }
                Line::Works(work) => {
                    tracing::info!(work = work.name(), "the store works again");
                }
            }
        }
    }
}

/// Which failures were logged.
#[derive(Debug, Default)]
struct TroubleLog {
    /// When the last line about each kind of failing work was logged.
    last: BTreeMap<Work, Instant>,
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Fails(Trouble),
    Works(Work),
}

impl TroubleLog {
    /// Returns the lines that are due.
    fn lines(&mut self, troubles: &[Trouble], now: Instant) -> Vec<Line> {
        let is_over = |work: &Work| troubles.iter().all(|trouble| trouble.work != *work);
        let over: Vec<Work> = self.last.keys().copied().filter(is_over).collect();
        let mut lines = Vec::new();
        for work in over {
            self.last.remove(&work);
            lines.push(Line::Works(work));
        }
        for trouble in troubles {
            let last = self.last.get(&trouble.work);
            if last.is_none_or(|last| now.saturating_duration_since(*last) >= REPEAT) {
                self.last.insert(trouble.work, now);
                lines.push(Line::Fails(trouble.clone()));
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
        let trouble = |work| {
            let (reason, error) = ("the disk is full".to_owned(), "/d is full".to_owned());
            Trouble { work, reason, error, since }
        };
        let full = [trouble(Work::Changes)];
        let both = [trouble(Work::Changes), trouble(Work::Indexing)];
        let fails = |work| Line::Fails(trouble(work));
        for (seconds, troubles, expected) in [
            (0, &[][..], vec![]),
            (1, &full, vec![fails(Work::Changes)]),
            (2, &full, vec![]),
            (60, &both, vec![fails(Work::Indexing)]),
            (61, &both, vec![fails(Work::Changes)]),
            (62, &full, vec![Line::Works(Work::Indexing)]),
            (63, &[], vec![Line::Works(Work::Changes)]),
            (64, &full, vec![fails(Work::Changes)]),
        ] {
            assert_eq!(log.lines(troubles, since + Duration::from_secs(seconds)), expected);
        }
    }
}
