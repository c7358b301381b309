//! The health of a target: checks mark it down and up, failed client connections eject it. Performs
//! no I/O.

use std::time::{Duration, Instant};

/// Options of health checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOptions {
    /// The pause between two checks; a check connects and closes. `None` (the default): no checks.
    pub interval: Option<Duration>,
    /// The consecutive successful checks after which a target that is down is up again. Default: 2.
    pub rise: u32,
    /// The consecutive failed checks after which a target is down. Default: 3.
    pub fall: u32,
    /// The consecutive failed connections of clients after which a target is ejected: it gets no
    /// connections for [`Self::eject_time`] unless all targets are down. Default: 3.
    pub eject_after: u32,
    /// The time for which a target is ejected. Default: 10 s.
    pub eject_time: Duration,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            interval: None,
            rise: 2,
            fall: 3,
            eject_after: 3,
            eject_time: Duration::from_secs(10),
        }
    }
}

/// The health of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Health {
    is_up: bool,
    /// The consecutive checks whose results contradict `is_up`.
    opposing: u32,
    /// The consecutive failed connections of clients.
    failures: u32,
    ejected_until: Option<Instant>,
}

impl Default for Health {
    fn default() -> Self {
        Self { is_up: true, opposing: 0, failures: 0, ejected_until: None }
    }
}

impl Health {
    /// Returns `true` if the target is neither down nor ejected at the time `now`.
    pub(super) fn is_up(&self, now: Instant) -> bool {
        self.is_up && self.ejected_until.is_none_or(|until| now >= until)
    }

    /// Records the result of a check.
    pub(super) fn checked(&mut self, options: &CheckOptions, success: bool) {
        if success == self.is_up {
            self.opposing = 0;
        } else {
            self.opposing += 1;
            let enough = if self.is_up { options.fall } else { options.rise };
            if self.opposing >= enough {
                (self.is_up, self.opposing) = (success, 0);
            }
        }
        // A successful check ends an ejection.
        if success && self.is_up {
            (self.failures, self.ejected_until) = (0, None);
        }
    }

    /// Records the result of a client's connection.
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
    fn target_falls_and_rises_after_consecutive_checks() {
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
            let mut health = Health::default();
            checks.chars().for_each(|check| health.checked(&options, check == '+'));
            assert_eq!(health.is_up(now), up, "{checks}");
        }
    }

    #[test]
    fn consecutive_failed_connections_eject_for_a_while() {
        let (options, now) = (CheckOptions::default(), Instant::now());
        let mut health = Health::default();
        let mut connected = |success| {
            health.connected(&options, success, now);
            health.clone()
        };
        assert!(connected(false).is_up(now) && connected(false).is_up(now));
        assert!(connected(true).is_up(now), "a success resets the count");
        assert!(connected(false).is_up(now) && connected(false).is_up(now));
        let ejected = connected(false);
        assert!(!ejected.is_up(now) && ejected.is_up(now + options.eject_time));
        // After the ejection, one failed connection ejects the target again.
        let later = now + options.eject_time;
        let mut again = ejected.clone();
        again.connected(&options, false, later);
        assert!(!again.is_up(later));
        let mut back = ejected.clone();
        back.connected(&options, true, later);
        assert!(back.is_up(now));
        let mut checked = ejected;
        checked.checked(&options, true);
        assert!(checked.is_up(now), "a successful check ends the ejection");
    }
}
