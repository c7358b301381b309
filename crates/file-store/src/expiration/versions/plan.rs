//! Computes a key's expired versions. Pure.

use crate::index::entry::Entry;
use crate::index::version_rows::VersionRow;
use crate::lifecycle::rules::{Lifecycle, LifecycleRule};
use crate::lifecycle::tags::ObjectTags;

/// A version that has expired, or may have.
#[derive(Debug)]
pub(super) struct Expired<'a> {
    pub(super) row: VersionRow,
    /// The rule that expires it regardless of its tags; `None` if its tags must be read.
    pub(super) rule: Option<&'a LifecycleRule>,
    /// The time since which it is noncurrent, and the number of newer noncurrent versions.
    noncurrent: (u64, u64),
}

impl<'a> Expired<'a> {
    /// Returns the rule that expires the version if it has these tags.
    pub(super) fn rule_for(
        &self,
        lifecycle: &'a Lifecycle,
        key: &str,
        tags: ObjectTags<'_>,
        now_ms: u64,
    ) -> Option<&'a LifecycleRule> {
        let bytes = self.row.entry.bytes;
        let by_tags = || lifecycle.expires_noncurrent(key, bytes, self.noncurrent, tags, now_ms);
        self.rule.or_else(by_tags)
    }
}

/// Returns a key's versions that have expired, or that expire if their tags match, from oldest to
/// newest. A version's age counts from the time at which the next newer version was stored, so
/// removing a newer one first would change the age.
///
/// `rows` are the versions in the internal bucket, from newest to oldest. If a row is a copy of the
/// current object, it is left for the key's next change.
pub(super) fn expired<'a>(
    lifecycle: &'a Lifecycle,
    key: &str,
    current: Option<&Entry>,
    rows: Vec<VersionRow>,
    now_ms: u64,
) -> Vec<Expired<'a>> {
    let is_copy = |row: &VersionRow| current.is_some_and(|current| row.is_copy_of(current));
    let mut rows = rows.into_iter().filter(|row| !is_copy(row)).peekable();
    let (newest_ms, marker) = match current {
        Some(current) => (current.version.millis(), None),
        None => match rows.next() {
            Some(newest) => (newest.entry.version.millis(), Some(newest)),
            None => return Vec::new(),
        },
    };
    if let Some(newest) = marker
        && rows.peek().is_none()
    {
        let rule = lifecycle.expires_marker(key, newest_ms, now_ms);
        let rule = rule.filter(|_| newest.entry.is_delete_marker());
        let expired = rule.map(|_| Expired { row: newest, rule, noncurrent: (newest_ms, 0) });
        return expired.into_iter().collect();
    }
    let (mut since_ms, mut newer) = (newest_ms, 0);
    let mut expired = Vec::new();
    for row in rows {
        let (bytes, stored_ms) = (row.entry.bytes, row.entry.version.millis());
        let noncurrent = (since_ms, newer);
        let rule = |tags| lifecycle.expires_noncurrent(key, bytes, noncurrent, tags, now_ms);
        let certain = rule(ObjectTags::none());
        let may_expire = !row.entry.is_delete_marker() && rule(ObjectTags::Unknown).is_some();
        if certain.is_some() || may_expire {
            expired.push(Expired { row, rule: certain, noncurrent });
        }
        (since_ms, newer) = (stored_ms, newer + 1);
    }
    expired.reverse();
    expired
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use haul_append_log::{Lsn, Position};

    use super::*;
    use crate::clock::Version;
    use crate::index::version_names::VersionName;
    use crate::lifecycle::rules::{Expiry, NoncurrentExpiry};
    use crate::object::Etag;

    const DAY_MS: u64 = 86_400_000;

    fn entry(stored_ms: u64, is_marker: bool) -> Entry {
        Entry {
            is_versioned: true,
            version: Version::from_millis(stored_ms),
            at: Position { lsn: Lsn::new(1, 4096), payload_bytes: 1 },
            bytes: if is_marker { 0 } else { 10 },
            etag: Etag { md5: [u8::from(!is_marker); 16], parts: 0 },
            files: Box::default(),
        }
    }

    fn row(stored_ms: u64, is_marker: bool) -> VersionRow {
        let name = VersionName { version: Version::from_millis(stored_ms), is_null: false };
        VersionRow { name, entry: entry(stored_ms, is_marker) }
    }

    fn rule(after_days: u64, newer_versions: u32) -> LifecycleRule {
        let after = Duration::from_millis(after_days * DAY_MS);
        let expire_noncurrent = Some(NoncurrentExpiry { after, newer_versions });
        LifecycleRule { enabled: true, expire_noncurrent, ..LifecycleRule::default() }
    }

    /// Returns the days on which the expired versions were stored. The rows are objects, and with a
    /// negative number delete markers.
    fn days(rule: LifecycleRule, current: Option<u64>, rows: &[i64], now: u64) -> Vec<u64> {
        let lifecycle = Lifecycle { rules: vec![rule] };
        let current = current.map(|day| entry(day * DAY_MS, false));
        let rows = rows.iter().map(|day| row(day.unsigned_abs() * DAY_MS, *day < 0)).collect();
        let expired = expired(&lifecycle, "key", current.as_ref(), rows, now * DAY_MS);
        expired.iter().map(|found| found.row.entry.version.millis() / DAY_MS).collect()
    }

    #[test]
    fn version_expires_by_the_time_since_it_is_not_current() {
        assert_eq!(days(rule(5, 0), Some(20), &[10, 9, 3], 24), [3, 9]);
        assert_eq!(days(rule(5, 0), Some(20), &[10, 9, 3], 25), [3, 9, 10]);
        assert_eq!(days(rule(5, 0), None, &[-20, 10, 9, 3], 24), [3, 9]);
        assert_eq!(days(rule(5, 0), None, &[-20, -10, 3], 25), [3, 10], "a marker is a version");
        assert_eq!(days(rule(5, 0), Some(20), &[], 99), [0; 0]);
    }

    #[test]
    fn newer_versions_are_kept() {
        for (newer, expected) in [(0, &[3, 9, 10][..]), (1, &[3, 9]), (2, &[3]), (3, &[])] {
            assert_eq!(days(rule(5, newer), Some(20), &[10, 9, 3], 99), expected);
            assert_eq!(days(rule(5, newer), None, &[-20, 10, 9, 3], 99), expected);
        }
    }

    #[test]
    fn current_version_and_its_copy_do_not_expire() {
        assert_eq!(days(rule(1, 0), Some(20), &[20, 10], 99), [10]);
        // Damage removed the current object: which version was the newest is not known.
        assert_eq!(days(rule(1, 0), None, &[20, 10], 99), [10]);
        assert_eq!(days(rule(1, 0), None, &[20], 99), [0; 0]);
    }

    #[test]
    fn marker_expires_only_without_other_versions() {
        let markers =
            LifecycleRule { enabled: true, expire_markers: true, ..LifecycleRule::default() };
        let age = Some(Expiry::After(Duration::from_millis(5 * DAY_MS)));
        let aged = LifecycleRule { enabled: true, expire: age, ..LifecycleRule::default() };
        let date = Some(Expiry::At(UNIX_EPOCH + Duration::from_millis(24 * DAY_MS)));
        let dated = LifecycleRule { expire: date, ..aged.clone() };
        for (rule, at_20, at_25) in
            [(markers, true, true), (aged, false, true), (dated, false, true)]
        {
            for (now, is_expired) in [(20, at_20), (25, at_25)] {
                let expected = if is_expired { vec![20] } else { Vec::new() };
                assert_eq!(days(rule.clone(), None, &[-20], now), expected, "{rule:?} {now}");
            }
            assert_eq!(days(rule.clone(), None, &[-20, -10], 99), [0; 0]);
            assert_eq!(days(rule.clone(), None, &[-20, 10], 99), [0; 0]);
            assert_eq!(days(rule, None, &[20], 99), [0; 0]);
        }
        assert_eq!(days(rule(5, 0), None, &[-20], 99), [0; 0]);
    }

    #[test]
    fn filters_apply_to_versions() {
        let large = LifecycleRule { bytes_greater_than: Some(10), ..rule(1, 0) };
        let small = LifecycleRule { bytes_less_than: Some(11), ..rule(1, 0) };
        let other = LifecycleRule { prefix: "other".to_owned(), ..rule(1, 0) };
        let disabled = LifecycleRule { enabled: false, ..rule(1, 0) };
        for (rule, expected) in [(large, &[][..]), (small, &[10]), (other, &[]), (disabled, &[])] {
            assert_eq!(days(rule, Some(20), &[10], 99), expected);
        }
    }
}
