//! A version's lock in its attributes, and the changes that it allows. Pure.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};
use crate::lifecycle::rules::millis;
use crate::object::Attributes;
use crate::object_lock::utc::format_utc;

const MODE: &str = "object-lock.mode";
const UNTIL: &str = "object-lock.until-ms";
const HOLD: &str = "object-lock.legal-hold";
const NAMES: [&str; 3] = [MODE, UNTIL, HOLD];

const DAY: Duration = Duration::from_hours(24);

/// The number of days per year in a retention period, as in S3.
const YEAR_DAYS: u32 = 365;

/// The rights that are needed to remove a version before its retention ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionMode {
    /// A caller that bypasses the governance mode may remove the version, or shorten its retention.
    Governance,
    /// The retention can only be extended.
    Compliance,
}

impl RetentionMode {
    const ALL: [Self; 2] = [Self::Governance, Self::Compliance];

    fn name(self) -> &'static str {
        match self {
            Self::Governance => "governance",
            Self::Compliance => "compliance",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == text)
    }
}

/// The period during which a version cannot be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Whether the retention can be bypassed (governance) or not (compliance).
    pub mode: RetentionMode,
    /// When the retention ends, with millisecond precision.
    pub until: SystemTime,
}

/// A version's S3 Object Lock state: its retention and its legal hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectLock {
    /// The retention period, which may have ended.
    pub retention: Option<Retention>,
    /// `true` while the version cannot be removed, regardless of its retention; `None` if it never
    /// had a legal hold.
    pub legal_hold: Option<bool>,
}

/// The retention that a bucket's new objects get if they are stored without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultRetention {
    /// Whether the retention can be bypassed (governance) or not (compliance).
    pub mode: RetentionMode,
    /// The length of the period, which begins when the object is stored.
    pub period: RetentionPeriod,
}

/// The length of a retention period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionPeriod {
    /// Days of 24 hours.
    Days(u32),
    /// Years of 365 days.
    Years(u32),
}

/// A change to a version's lock.
#[derive(Debug, Clone, Copy)]
pub(super) enum LockChange {
    Retention { retention: Option<Retention>, bypass_governance: bool },
    LegalHold(bool),
}

impl ObjectLock {
    /// Returns the lock in an object's attributes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the lock is malformed: a later version may have written it.
    pub fn of(attributes: &Attributes) -> Result<Self> {
        let [mode, until, hold] = NAMES.map(|name| attributes.get(name));
        let retention = match (mode, until) {
            (None, None) => Some(None),
            (Some(mode), Some(until)) => RetentionMode::parse(mode)
                .zip(until.parse().ok().map(Duration::from_millis))
                .and_then(|(mode, until)| {
                    Some(Some(Retention { mode, until: UNIX_EPOCH.checked_add(until)? }))
                }),
            _ => None,
        };
        let legal_hold = match hold {
            None => Some(None),
            Some("on") => Some(Some(true)),
            Some("off") => Some(Some(false)),
            Some(_) => None,
        };
        let (Some(retention), Some(legal_hold)) = (retention, legal_hold) else {
            let what = format!(
                "the lock of an object is malformed: mode {mode:?} until {until:?}, hold {hold:?}"
            );
            return Err(Error::Invalid { what });
        };
        Ok(Self { retention, legal_hold })
    }

    /// Replaces the lock in an object's attributes.
    pub fn set_in(&self, attributes: &mut Attributes) {
        Self::remove_from(attributes);
        if let Some(Retention { mode, until }) = self.retention {
            attributes.set(MODE, mode.name());
            attributes.set(UNTIL, millis(until).to_string());
        }
        if let Some(is_on) = self.legal_hold {
            attributes.set(HOLD, if is_on { "on" } else { "off" });
        }
    }

    /// Removes the lock from attributes that are copied to another object.
    pub fn remove_from(attributes: &mut Attributes) {
        NAMES.into_iter().for_each(|name| drop(attributes.remove(name)));
    }

    /// Returns `true` if attributes have a lock, which may be malformed.
    pub(crate) fn is_in(attributes: &Attributes) -> bool {
        NAMES.into_iter().any(|name| attributes.get(name).is_some())
    }

    /// Returns the reason why the version cannot be removed now; `None` if it can.
    pub(super) fn protection(&self, now_ms: u64, bypass_governance: bool) -> Option<String> {
        if self.legal_hold == Some(true) {
            return Some("it has a legal hold".to_owned());
        }
        let Retention { mode, until } = self.active_retention(now_ms)?;
        match mode {
            RetentionMode::Governance if bypass_governance => None,
            _ => Some(format!(
                "its retention in {} mode ends at {}",
                mode.name(),
                format_utc(millis(until))
            )),
        }
    }

    fn active_retention(&self, now_ms: u64) -> Option<Retention> {
        self.retention.filter(|retention| millis(retention.until) > now_ms)
    }

    /// Returns the lock after a change, or the reason why the change is rejected.
    pub(super) fn apply(
        self,
        change: LockChange,
        now_ms: u64,
    ) -> std::result::Result<Self, String> {
        match change {
            LockChange::LegalHold(is_on) => Ok(Self { legal_hold: Some(is_on), ..self }),
            LockChange::Retention { retention, bypass_governance } => {
                let is_allowed = self.active_retention(now_ms).is_none_or(|old| {
                    let extends = |new: Retention| new.mode == old.mode && new.until >= old.until;
                    (bypass_governance && old.mode == RetentionMode::Governance)
                        || retention.is_some_and(extends)
                });
                match is_allowed {
                    true => Ok(Self { retention, ..self }),
                    false => Err("its retention can only be extended".to_owned()),
                }
            }
        }
    }
}

impl DefaultRetention {
    /// Returns the retention for an object that is stored now.
    pub(super) fn starting_at(self, now_ms: u64) -> Retention {
        let days = match self.period {
            RetentionPeriod::Days(days) => days,
            RetentionPeriod::Years(years) => years.saturating_mul(YEAR_DAYS),
        };
        let until = UNIX_EPOCH + Duration::from_millis(now_ms) + DAY * days;
        Retention { mode: self.mode, until }
    }

    /// Formats the retention as a bucket setting: `governance 30 days`.
    pub(super) fn to_setting(self) -> String {
        let (number, unit) = match self.period {
            RetentionPeriod::Days(days) => (days, "days"),
            RetentionPeriod::Years(years) => (years, "years"),
        };
        format!("{} {number} {unit}", self.mode.name())
    }

    /// Parses a bucket setting.
    pub(super) fn from_setting(text: &str) -> Result<Self> {
        let parse = || {
            let mut words = text.split(' ');
            let mode = RetentionMode::parse(words.next()?)?;
            let number = words.next()?.parse().ok()?;
            let period = match words.next()? {
                "days" => RetentionPeriod::Days(number),
                "years" => RetentionPeriod::Years(number),
                _ => return None,
            };
            words.next().is_none().then_some(Self { mode, period })
        };
        parse().ok_or_else(|| {
            let what = format!("the default retention of the bucket is malformed: \"{text}\"");
            Error::Invalid { what }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::RetentionMode::{Compliance, Governance};
    use super::*;

    fn retention(mode: RetentionMode, until_ms: u64) -> Retention {
        Retention { mode, until: UNIX_EPOCH + Duration::from_millis(until_ms) }
    }

    fn lock(mode: RetentionMode, until_ms: u64) -> ObjectLock {
        ObjectLock { retention: Some(retention(mode, until_ms)), legal_hold: None }
    }

    #[test]
    fn retention_protects_until_it_ends() {
        for (mode, bypass, is_protected) in [
            (Governance, false, true),
            (Governance, true, false),
            (Compliance, false, true),
            (Compliance, true, true),
        ] {
            assert_eq!(lock(mode, 10).protection(9, bypass).is_some(), is_protected, "{mode:?}");
            assert_eq!(lock(mode, 10).protection(10, bypass), None);
            let held = ObjectLock { legal_hold: Some(true), ..lock(mode, 10) };
            assert!(held.protection(10, bypass).is_some());
            let released = ObjectLock { legal_hold: Some(false), ..lock(mode, 10) };
            assert_eq!(released.protection(10, bypass), None);
        }
        assert_eq!(ObjectLock::default().protection(0, false), None);
        let reason = lock(Governance, 1_795_862_986_301).protection(0, false);
        let expected = "its retention in governance mode ends at 2026-11-28T10:49:46Z";
        assert_eq!(reason.as_deref(), Some(expected));
    }

    #[test]
    fn retention_is_extended_by_all_and_shortened_only_in_governance_mode() {
        let [shorter, same, longer] = [9, 10, 11].map(|until| retention(Governance, until));
        let stricter = retention(Compliance, 11);
        for (old, new, without, bypassing) in [
            (Governance, Some(shorter), false, true),
            (Governance, Some(same), true, true),
            (Governance, Some(longer), true, true),
            (Governance, Some(stricter), false, true),
            (Governance, None, false, true),
            (Compliance, Some(retention(Compliance, 9)), false, false),
            (Compliance, Some(stricter), true, true),
            (Compliance, Some(longer), false, false),
            (Compliance, None, false, false),
        ] {
            for (bypass_governance, expected) in [(false, without), (true, bypassing)] {
                let change = LockChange::Retention { retention: new, bypass_governance };
                let changed = lock(old, 10).apply(change, 5);
                assert_eq!(changed.is_ok(), expected, "{old:?} {new:?} {bypass_governance}");
                assert!(
                    changed.is_err()
                        || changed == Ok(ObjectLock { retention: new, ..changed.clone().unwrap() })
                );
                assert!(lock(old, 10).apply(change, 10).is_ok(), "it has ended");
            }
        }
    }

    #[test]
    fn malformed_locks_are_errors() {
        for pairs in [
            &[(MODE, "governance")][..],
            &[(UNTIL, "5")],
            &[(MODE, "GOVERNANCE"), (UNTIL, "5")],
            &[(MODE, "compliance"), (UNTIL, "-5")],
            &[(HOLD, "ON")],
        ] {
            let attributes: Attributes = pairs.iter().copied().collect();
            assert!(ObjectLock::of(&attributes).is_err(), "{pairs:?}");
            assert!(ObjectLock::is_in(&attributes));
        }
        for text in ["", "governance", "governance 1", "governance 1 day", "compliance 1 days x"] {
            assert!(DefaultRetention::from_setting(text).is_err(), "{text}");
        }
    }

    #[test]
    fn default_retention_starts_when_the_object_is_stored() {
        for (period, days) in [(RetentionPeriod::Days(3), 3), (RetentionPeriod::Years(2), 730)] {
            let default = DefaultRetention { mode: Compliance, period };
            assert_eq!(DefaultRetention::from_setting(&default.to_setting()).unwrap(), default);
            let expected = retention(Compliance, 7 + days * 86_400_000);
            assert_eq!(default.starting_at(7), expected);
        }
        let longest = RetentionPeriod::Years(u32::MAX);
        let longest = DefaultRetention { mode: Compliance, period: longest };
        assert!(longest.starting_at(0).until > SystemTime::now());
    }

    proptest! {
        #[test]
        fn locks_round_trip_through_attributes(
            mode in prop::option::of(prop::sample::select(RetentionMode::ALL.to_vec())),
            until: u32,
            legal_hold: Option<bool>,
        ) {
            let retention = mode.map(|mode| retention(mode, u64::from(until)));
            let lock = ObjectLock { retention, legal_hold };
            let mut attributes = Attributes::from_iter([("other", "1"), (HOLD, "on")]);
            lock.set_in(&mut attributes);
            prop_assert_eq!(ObjectLock::of(&attributes).unwrap(), lock);
            prop_assert_eq!(ObjectLock::is_in(&attributes), lock != ObjectLock::default());
            ObjectLock::remove_from(&mut attributes);
            prop_assert_eq!(attributes, Attributes::from_iter([("other", "1")]));
        }
    }
}
