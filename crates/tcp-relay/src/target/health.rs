//! When a target is down, and when it is up again. Pure.

use std::time::{Duration, Instant};

/// How targets are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOptions {
    /// How often each target is connected to, only to see whether it answers; none: never.
    pub every: Option<Duration>,
    /// So many checks in a row must succeed before a target that is down is up. 2.
    pub rise: u32,
    /// So many checks in a row must fail before a target that is up is down. 3.
    pub fall: u32,
    /// So many connections of clients in a row must fail before a target gets none for
    /// [`Self::eject_time`]. 3.
    pub eject_after: u32,
    /// How long. 10 s.
    pub eject_time: Duration,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { every: None, rise: 2, fall: 3, eject_after: 3, eject_time: Duration::from_secs(10) }
    }
}

/// What is known of the health of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    is_up: bool,
    /// Checks in a row that spoke against `is_up`.
    against: u32,
    /// Connections of clients that failed in a row.
    failures: u32,
    ejected_until: Option<Instant>,
}

impl Default for State {
    fn default() -> Self {
        Self { is_up: true, against: 0, failures: 0, ejected_until: None }
    }
}

impl State {
    /// Whether connections go there at that time.
    pub(super) fn is_up(&self, now: Instant) -> bool {
        self.is_up && self.ejected_until.is_none_or(|until| now >= until)
    }

    /// Learns how a check ended.
    pub(super) fn checked(&mut self, options: &CheckOptions, success: bool) {
        if success == self.is_up {
            self.against = 0;
        } else {
            self.against += 1;
            let enough = if self.is_up { options.fall } else { options.rise };
            if self.against >= enough {
                (self.is_up, self.against) = (success, 0);
            }
        }
        // A check that succeeds is news: the clients' failures are history.
        if success && self.is_up {
            (self.failures, self.ejected_until) = (0, None);
        }
    }

    /// Learns how the connection of a client ended up.
    pub(super) fn connected(&mut self, options: &CheckOptions, success: bool, now: Instant) {
        if success {
            (self.failures, self.ejected_until) = (0, None);
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures >= options.eject_after {
            self.ejected_until = Some(now + options.eject_time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_falls_and_rises_after_so_many_in_a_row() {
        let (options, now) = (CheckOptions::default(), Instant::now());
        for (checks, up) in [
            ("", true),
            ("--", true),
            ("--+--", true),
            ("---", false),
            ("---+", false),
            ("---+-+", false),
            ("---++", true),
            ("---++--", true),
            ("---++---", false),
        ] {
            let mut state = State::default();
            checks.chars().for_each(|check| state.checked(&options, check == '+'));
            assert_eq!(state.is_up(now), up, "{checks}");
        }
    }

    #[test]
    fn failed_connections_eject_for_a_while() {
        let (options, now) = (CheckOptions::default(), Instant::now());
        let mut state = State::default();
        let mut connected = |success| {
            state.connected(&options, success, now);
            state.clone()
        };
        assert!(connected(false).is_up(now) && connected(false).is_up(now));
        assert!(connected(true).is_up(now), "the row is broken");
        assert!(connected(false).is_up(now) && connected(false).is_up(now));
        let ejected = connected(false);
        assert!(!ejected.is_up(now) && ejected.is_up(now + options.eject_time));
        // The first attempt after that decides.
        let later = now + options.eject_time;
        let mut again = ejected.clone();
        again.connected(&options, false, later);
        assert!(!again.is_up(later));
        let mut back = ejected.clone();
        back.connected(&options, true, later);
        assert!(back.is_up(now));
        let mut checked = ejected;
        checked.checked(&options, true);
        assert!(checked.is_up(now), "a check that succeeds ends it");
    }
}
