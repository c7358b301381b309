//! Lifecycle rules and their evaluation for an object. Pure.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};
use crate::lifecycle::tags::{ObjectTags, Tags};
use crate::object::{Attributes, ObjectInfo};

pub(crate) const DAY_MS: u64 = 24 * 3_600_000;

/// The maximum number of rules that a bucket can have (as in S3).
pub const LIFECYCLE_RULES_MAX: usize = 1000;

/// A bucket's lifecycle. Without rules, nothing expires.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// The rules, at most [`LIFECYCLE_RULES_MAX`], with unique IDs.
    pub rules: Vec<LifecycleRule>,
}

/// A lifecycle rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LifecycleRule {
    /// The rule's name, unique in its bucket.
    pub id: String,
    /// `true` if the rule has an effect.
    pub enabled: bool,
    /// The prefix of the keys to which the rule applies; empty for all keys.
    pub prefix: String,
    /// The rule applies only to objects longer than this, in bytes.
    pub bytes_greater_than: Option<u64>,
    /// The rule applies only to objects shorter than this, in bytes.
    pub bytes_less_than: Option<u64>,
    /// The rule applies only to objects with all of these tags. Uploads and delete markers have
    /// none.
    pub tags: Tags,
    /// The time at which objects expire; `None` for never.
    pub expire: Option<Expiry>,
    /// The expiration of noncurrent versions, including noncurrent delete markers; `None` for
    /// never.
    pub expire_noncurrent: Option<NoncurrentExpiry>,
    /// Removes delete markers that are the only version of their key, at any age. The time of
    /// `expire` applies to them in any case.
    pub expire_markers: bool,
    /// The age at which an unfinished upload is aborted. The limits on bytes do not apply.
    pub abort_uploads_after: Option<Duration>,
    /// Times computed from an age are rounded up to a multiple of this duration since 1970. S3
    /// rounds up to the next midnight UTC. Zero: times are not rounded.
    pub round_up_to: Duration,
    /// A text that the caller stores with the rule.
    pub note: String,
}

/// The time at which an object expires, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// At this age.
    After(Duration),
    /// At this time, regardless of its age.
    At(SystemTime),
}

/// The expiration of noncurrent versions, including noncurrent delete markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoncurrentExpiry {
    /// The time since the next newer version was stored.
    pub after: Duration,
    /// The number of newest noncurrent versions that the rule retains (S3:
    /// `NewerNoncurrentVersions`).
    pub newer_versions: u32,
}

impl Lifecycle {
    /// Returns the earliest time at which a rule expires an object, and this rule. Expired objects
    /// are served until a sweep deletes them.
    #[must_use]
    pub fn expiration(
        &self,
        info: &ObjectInfo,
        attributes: &Attributes,
    ) -> Option<(SystemTime, &LifecycleRule)> {
        let tags = if self.has_tags() { attributes.tags() } else { Tags::new() };
        let stored_ms = millis(info.modified);
        let (at, rule) =
            self.expires_ms(&info.key, info.bytes, stored_ms, ObjectTags::Known(&tags))?;
        Some((UNIX_EPOCH + Duration::from_millis(at), rule))
    }

    /// Returns the time at which an object expires, in milliseconds since 1970.
    pub(crate) fn expires_ms(
        &self,
        key: &str,
        bytes: u64,
        modified_ms: u64,
        tags: ObjectTags<'_>,
    ) -> Option<(u64, &LifecycleRule)> {
        let rules = self.rules.iter().filter(|rule| rule.selects(key, bytes, tags));
        let expires = |rule: &'_ LifecycleRule| rule.expires_ms(modified_ms);
        rules.filter_map(|rule| Some((expires(rule)?, rule))).min_by_key(|(at, _)| *at)
    }

    /// Returns the time at which an upload is aborted, in milliseconds since 1970.
    pub(crate) fn upload_expires_ms(
        &self,
        key: &str,
        started_ms: u64,
    ) -> Option<(u64, &LifecycleRule)> {
        let expires =
            |rule: &LifecycleRule| Some(rule.time_at_age(started_ms, rule.abort_uploads_after?));
        let rules = self.rules.iter().filter(|rule| rule.applies_to(key));
        rules.filter_map(|rule| Some((expires(rule)?, rule))).min_by_key(|(at, _)| *at)
    }

    /// Returns the rule that expires a version that became noncurrent at `since_ms` and has `newer`
    /// newer noncurrent versions.
    pub(crate) fn expires_noncurrent(
        &self,
        key: &str,
        bytes: u64,
        (since_ms, newer): (u64, u64),
        tags: ObjectTags<'_>,
        now_ms: u64,
    ) -> Option<&LifecycleRule> {
        let expires = |rule: &&LifecycleRule| {
            rule.expire_noncurrent.is_some_and(|expiry| {
                newer >= u64::from(expiry.newer_versions)
                    && rule.time_at_age(since_ms, expiry.after) <= now_ms
            })
        };
        let mut rules = self.rules.iter().filter(|rule| rule.selects(key, bytes, tags));
        rules.find(expires)
    }

    /// Returns the rule that removes a delete marker that is the only version of its key.
    pub(crate) fn expires_marker(
        &self,
        key: &str,
        stored_ms: u64,
        now_ms: u64,
    ) -> Option<&LifecycleRule> {
        let none = ObjectTags::none();
        let mut rules = self.rules.iter().filter(|rule| rule.selects(key, 0, none));
        rules.find(|rule| {
            let expires_ms = rule.expires_ms(stored_ms);
            rule.expire_markers || expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
        })
    }

    /// Returns the smallest sorted list of prefixes that covers all objects that may be expired at
    /// a time.
    pub(crate) fn prefixes(&self, now_ms: u64) -> Vec<&str> {
        self.covering(|rule| rule.may_expire(now_ms))
    }

    /// Returns the smallest sorted list of prefixes that covers all versions and delete markers
    /// that may be expired at a time.
    pub(crate) fn version_prefixes(&self, now_ms: u64) -> Vec<&str> {
        self.covering(|rule| {
            rule.expire_noncurrent.is_some() || rule.expire_markers || rule.may_expire(now_ms)
        })
    }

    /// Returns the smallest sorted list of prefixes that covers the prefixes of all enabled rules
    /// that `is_chosen` selects.
    fn covering(&self, is_chosen: impl Fn(&LifecycleRule) -> bool) -> Vec<&str> {
        let chosen = self.rules.iter().filter(|rule| rule.enabled && is_chosen(rule));
        let mut prefixes: Vec<&str> = chosen.map(|rule| rule.prefix.as_str()).collect();
        prefixes.sort_unstable();
        // In byte order, a prefix comes before all names that start with it.
        prefixes.dedup_by(|next, kept| next.starts_with(*kept));
        prefixes
    }

    /// Returns `true` if an enabled rule is limited to objects with some tags.
    pub(crate) fn has_tags(&self) -> bool {
        self.rules.iter().any(|rule| rule.enabled && !rule.tags.is_empty())
    }

    /// Returns `true` if an enabled rule aborts uploads.
    pub(crate) fn aborts_uploads(&self) -> bool {
        self.rules.iter().any(|rule| rule.enabled && rule.abort_uploads_after.is_some())
    }

    /// Returns the rules for a day of this length: all ages change in proportion, and are not
    /// rounded.
    pub(crate) fn with_days_of(&self, day: Duration) -> Self {
        let day_ms = duration_millis(day);
        if day_ms == DAY_MS {
            return self.clone();
        }
        let scaled = |age: Duration| {
            let ms = u128::from(duration_millis(age)) * u128::from(day_ms) / u128::from(DAY_MS);
            Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
        };
        let rule = |rule: &LifecycleRule| LifecycleRule {
            expire: rule.expire.map(|expiry| match expiry {
                Expiry::After(age) => Expiry::After(scaled(age)),
                Expiry::At(time) => Expiry::At(time),
            }),
            expire_noncurrent: rule
                .expire_noncurrent
                .map(|expiry| NoncurrentExpiry { after: scaled(expiry.after), ..expiry }),
            abort_uploads_after: rule.abort_uploads_after.map(scaled),
            round_up_to: Duration::ZERO,
            ..rule.clone()
        };
        Self { rules: self.rules.iter().map(rule).collect() }
    }

    /// Returns an error if the rules contradict each other or themselves.
    pub(crate) fn check(&self) -> Result<()> {
        let invalid = |what: String| Err(Error::Invalid { what });
        if self.rules.len() > LIFECYCLE_RULES_MAX {
            let count = self.rules.len();
            return invalid(format!(
                "a lifecycle of {count} rules has more than {LIFECYCLE_RULES_MAX}"
            ));
        }
        let mut ids: Vec<&str> = self.rules.iter().map(|rule| rule.id.as_str()).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return invalid(format!("two lifecycle rules have the ID \"{}\"", pair[0]));
        }
        self.rules.iter().try_for_each(LifecycleRule::check)
    }
}

impl LifecycleRule {
    fn check(&self) -> Result<()> {
        let invalid = |why: &str| {
            let what = format!("the lifecycle rule \"{}\" {why}", self.id);
            Err(Error::Invalid { what })
        };
        let noncurrent_age = self.expire_noncurrent.map(|expiry| expiry.after);
        let expires = self.expire.is_some() || noncurrent_age.is_some() || self.expire_markers;
        if !expires && self.abort_uploads_after.is_none() {
            return invalid("neither expires objects or versions nor aborts uploads");
        }
        if !self.tags.is_empty() && (self.expire_markers || self.abort_uploads_after.is_some()) {
            return invalid("is limited to tags, which delete markers and uploads do not have");
        }
        let is_zero = |age: &Duration| age.as_millis() == 0;
        let expire_age = match self.expire {
            Some(Expiry::After(age)) => Some(age),
            Some(Expiry::At(_)) | None => None,
        };
        let ages = expire_age.iter().chain(&noncurrent_age).chain(&self.abort_uploads_after);
        if ages.into_iter().any(is_zero) {
            return invalid("has an age of zero");
        }
        match (self.bytes_greater_than, self.bytes_less_than) {
            (Some(greater), Some(less)) if less <= greater.saturating_add(1) => {
                invalid("applies to objects of no size")
            }
            _ => Ok(()),
        }
    }

    /// Returns the time at which an object stored at `stored_ms` expires, in milliseconds since
    /// 1970.
    fn expires_ms(&self, stored_ms: u64) -> Option<u64> {
        Some(match self.expire? {
            Expiry::After(age) => self.time_at_age(stored_ms, age),
            Expiry::At(time) => millis(time),
        })
    }

    /// Returns `true` if the rule may expire an object at `now_ms`.
    fn may_expire(&self, now_ms: u64) -> bool {
        match self.expire {
            Some(Expiry::At(time)) => millis(time) <= now_ms,
            Some(Expiry::After(_)) => true,
            None => false,
        }
    }

    /// Returns `true` if the rule is enabled and applies to an object.
    fn selects(&self, key: &str, bytes: u64, tags: ObjectTags<'_>) -> bool {
        self.applies_to(key) && self.allows(bytes) && tags.may_include(&self.tags)
    }

    fn applies_to(&self, key: &str) -> bool {
        self.enabled && key.starts_with(&self.prefix)
    }

    fn allows(&self, bytes: u64) -> bool {
        self.bytes_greater_than.is_none_or(|limit| bytes > limit)
            && self.bytes_less_than.is_none_or(|limit| bytes < limit)
    }

    /// Returns the time, rounded up, at which data written at `from_ms` reaches an age.
    fn time_at_age(&self, from_ms: u64, age: Duration) -> u64 {
        let at = from_ms.saturating_add(duration_millis(age));
        match duration_millis(self.round_up_to) {
            0 => at,
            unit => at.checked_next_multiple_of(unit).unwrap_or(u64::MAX),
        }
    }
}

/// Returns the milliseconds from 1970 to `time`; 0 for an earlier time.
pub(crate) fn millis(time: SystemTime) -> u64 {
    duration_millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Returns a duration in milliseconds, at most half of the type's range, so that sums of times and
/// ages do not overflow.
pub(crate) fn duration_millis(duration: Duration) -> u64 {
    const MILLIS_MAX: u64 = 1 << 53;
    u64::try_from(duration.as_millis()).unwrap_or(MILLIS_MAX).min(MILLIS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;
    const NONE: ObjectTags<'_> = ObjectTags::Unknown;

    fn rule(id: &str, prefix: &str, expire: Expiry) -> LifecycleRule {
        let (id, prefix) = (id.to_owned(), prefix.to_owned());
        LifecycleRule { id, enabled: true, prefix, expire: Some(expire), ..Default::default() }
    }

    fn days(days: u64) -> Expiry {
        Expiry::After(Duration::from_millis(days * DAY_MS))
    }

    fn at(ms: u64) -> Expiry {
        Expiry::At(UNIX_EPOCH + Duration::from_millis(ms))
    }

    fn lifecycle(rules: &[LifecycleRule]) -> Lifecycle {
        Lifecycle { rules: rules.to_vec() }
    }

    #[test]
    fn earliest_applicable_rule_decides() {
        let disabled = LifecycleRule { enabled: false, ..rule("off", "", days(1)) };
        let all = lifecycle(&[disabled, rule("a", "logs/", days(9)), rule("b", "logs/x", days(3))]);
        let expires = |key: &str| all.expires_ms(key, 1, 0, NONE).map(|(at, rule)| (at, &*rule.id));
        assert_eq!(expires("logs/a"), Some((9 * DAY_MS, "a")));
        assert_eq!(expires("logs/xy"), Some((3 * DAY_MS, "b")));
        assert_eq!(expires("log"), None);
        let dated = lifecycle(&[rule("a", "", days(9)), rule("date", "", at(7))]);
        assert_eq!(dated.expires_ms("k", 1, DAY_MS, NONE).unwrap().0, 7);
    }

    #[test]
    fn ages_are_rounded_up_to_midnight_and_dates_are_not() {
        let round_up_to = Duration::from_millis(DAY_MS);
        let rounded = lifecycle(&[LifecycleRule { round_up_to, ..rule("a", "", days(1)) }]);
        for (modified, expires) in
            [(0, DAY_MS), (1, 2 * DAY_MS), (DAY_MS - 1, 2 * DAY_MS), (DAY_MS, 2 * DAY_MS)]
        {
            assert_eq!(
                rounded.expires_ms("k", 1, modified, NONE).unwrap().0,
                expires,
                "{modified}"
            );
        }
        let dated = lifecycle(&[LifecycleRule { round_up_to, ..rule("a", "", at(HOUR_MS)) }]);
        assert_eq!(dated.expires_ms("k", 1, 0, NONE).unwrap().0, HOUR_MS);
        let uploads = LifecycleRule {
            expire: None,
            abort_uploads_after: Some(Duration::from_millis(2 * DAY_MS)),
            ..rounded.rules[0].clone()
        };
        assert_eq!(lifecycle(&[uploads]).upload_expires_ms("k", 1).unwrap().0, 3 * DAY_MS);
    }

    #[test]
    fn days_of_another_length_change_ages_and_are_not_rounded() {
        let round_up_to = Duration::from_millis(DAY_MS);
        let noncurrent = NoncurrentExpiry { after: round_up_to * 3, newer_versions: 1 };
        let aged = LifecycleRule {
            round_up_to,
            expire_noncurrent: Some(noncurrent),
            abort_uploads_after: Some(round_up_to),
            ..rule("a", "", days(2))
        };
        let rules = lifecycle(&[aged, rule("date", "", at(HOUR_MS))]);
        assert_eq!(rules.with_days_of(Duration::from_millis(DAY_MS)), rules);
        let short = rules.with_days_of(Duration::from_secs(10)).rules;
        let seconds = Duration::from_secs;
        assert_eq!(short[0].expire, Some(Expiry::After(seconds(20))));
        assert_eq!(short[0].expire_noncurrent.unwrap().after, seconds(30));
        assert_eq!(short[0].abort_uploads_after, Some(seconds(10)));
        assert_eq!(short[0].time_at_age(1, seconds(20)), 20_001);
        assert_eq!(short[1].expire, rules.rules[1].expire);
    }

    #[test]
    fn rule_with_tags_applies_only_to_objects_that_have_them() {
        let tags: Tags = [("a", "1"), ("b", "2")].map(|(k, v)| (k.into(), v.into())).into();
        let both = LifecycleRule { tags: tags.clone(), ..rule("both", "", days(1)) };
        let all = lifecycle(&[both.clone(), rule("later", "", days(9))]);
        let expires = |tags: &Tags| all.expires_ms("k", 1, 0, ObjectTags::Known(tags)).unwrap().1;
        assert_eq!(expires(&tags).id, "both");
        let first = tags.iter().take(1).map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!((&*expires(&first).id, &*expires(&Tags::new()).id), ("later", "later"));
        let unknown = all.expires_ms("k", 1, 0, ObjectTags::Unknown);
        assert_eq!(unknown.unwrap().1.id, "both", "it may have the tags");
        assert!(all.has_tags() && !lifecycle(&all.rules[1..]).has_tags());
        let markers = LifecycleRule { expire_markers: true, ..both.clone() };
        let uploads = LifecycleRule { abort_uploads_after: Some(Duration::MAX), ..both };
        for rule in [markers, uploads] {
            assert!(lifecycle(&[rule]).check().unwrap_err().to_string().contains("tags"));
        }
    }

    #[test]
    fn size_limits_are_exclusive() {
        let (bytes_greater_than, bytes_less_than) = (Some(10), Some(20));
        let sized = LifecycleRule { bytes_greater_than, bytes_less_than, ..rule("a", "", days(1)) };
        let sized = lifecycle(&[sized]);
        for (bytes, applies) in [(10, false), (11, true), (19, true), (20, false)] {
            assert_eq!(sized.expires_ms("k", bytes, 0, NONE).is_some(), applies, "{bytes}");
        }
    }

    #[test]
    fn only_prefixes_with_rules_are_swept() {
        let off = LifecycleRule { enabled: false, ..rule("off", "", days(1)) };
        let rules = [
            off,
            rule("1", "logs/2026/", days(1)),
            rule("2", "tmp", days(1)),
            rule("3", "logs/", days(1)),
            rule("4", "tmp", days(3)),
            rule("5", "later", at(100)),
        ];
        assert_eq!(lifecycle(&rules).prefixes(99), ["logs/", "tmp"]);
        assert_eq!(lifecycle(&rules).prefixes(100), ["later", "logs/", "tmp"]);
        let all = lifecycle(&[rule("1", "a", days(1)), rule("2", "", days(1))]);
        assert_eq!(all.prefixes(0), [""]);
    }

    #[test]
    fn contradictory_rules_are_refused() {
        let good = rule("a", "", days(1));
        assert!(lifecycle(std::slice::from_ref(&good)).check().is_ok());
        let (bytes_greater_than, bytes_less_than) = (Some(10), Some(11));
        let many: Vec<_> = (0..=LIFECYCLE_RULES_MAX)
            .map(|number| LifecycleRule { id: number.to_string(), ..good.clone() })
            .collect();
        for (rules, why) in [
            (vec![good.clone(), good.clone()], "two lifecycle rules"),
            (vec![LifecycleRule { expire: None, ..good.clone() }], "neither"),
            (vec![rule("a", "", days(0))], "an age of zero"),
            (
                vec![LifecycleRule { bytes_greater_than, bytes_less_than, ..good.clone() }],
                "of no size",
            ),
            (many, "more than 1000"),
        ] {
            let error = lifecycle(&rules).check().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let far = rule("a", "", Expiry::After(Duration::MAX));
        let far = LifecycleRule { round_up_to: Duration::from_millis(DAY_MS), ..far };
        let info = ObjectInfo {
            version_id: crate::object::VersionId::Null,
            key: "k".to_owned(),
            bytes: 1,
            modified: SystemTime::now(),
            etag: crate::Etag { md5: [0; 16], parts: 0 },
        };
        let none = Attributes::new();
        assert!(lifecycle(&[far]).expiration(&info, &none).unwrap().0 > info.modified);
    }
}
