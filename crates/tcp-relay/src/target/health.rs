//! Tracks the health of a target: health checks mark the target as down or up, and failed
//! connections of clients eject it for a while. Performs no I/O.

use std::time::{Duration, Instant};

/// Options of health checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOptions {
    /// The pause between two checks of a target; a check opens a connection and closes it. `None`
    /// (the default): no checks.
    pub interval: Option<Duration>,
    /// The number of consecutive successful checks after which a target that is down counts as up.
    /// Default: 2.
    pub rise: u32,
    /// The number of consecutive failed checks after which a target counts as down. Default: 3.
    pub fall: u32,
    /// The number of consecutive failed connections of clients after which a target is ejected: for
    /// [`Self::eject_time`] the relay tries it only after all targets that are up. Default: 3.
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
    /// The number of consecutive checks whose results contradict `is_up`.
    opposing: u32,
    /// The number of consecutive failed connections of clients.
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

    /// Records the result of connecting to the target for a client.
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
