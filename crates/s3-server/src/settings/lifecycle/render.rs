//! Converts the store's rules to S3's rules, in the form in which the client sent them. Pure.

use std::time::Duration;

use haul_file_store::{Expiry, Lifecycle, LifecycleRule, NoncurrentExpiry};

use super::configuration::{
    Abort, Conditions, DISABLED, ENABLED, Expiration, Filter, LifecycleConfiguration,
    NoncurrentExpiration, Rule,
};
use super::{AND, DAY, FILTER_PREFIX, RULE_PREFIX};

/// Converts the store's lifecycle to S3's rules.
pub(super) fn configuration(lifecycle: &Lifecycle) -> LifecycleConfiguration {
    LifecycleConfiguration { rules: lifecycle.rules.iter().map(rule).collect() }
}

fn rule(rule: &LifecycleRule) -> Rule {
    let status = if rule.enabled { ENABLED } else { DISABLED };
    let has_own_prefix = rule.note == RULE_PREFIX;
    Rule {
        id: Some(rule.id.clone()),
        status: status.to_owned(),
        prefix: has_own_prefix.then(|| rule.prefix.clone()),
        filter: (!has_own_prefix).then(|| filter(rule)),
        expiration: expiration(rule),
        noncurrent: rule.expire_noncurrent.map(noncurrent),
        abort: rule.abort_uploads_after.map(|age| Abort { days: Some(days(age)) }),
        transitions: Vec::new(),
    }
}

fn filter(rule: &LifecycleRule) -> Filter {
    let conditions = Conditions {
        prefix: Some(&rule.prefix).filter(|prefix| !prefix.is_empty()).cloned(),
        greater_than: rule.bytes_greater_than.map(length),
        less_than: rule.bytes_less_than.map(length),
        tags: rule.tags.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
    };
    // Rules that were not set with an S3 request have no note.
    if rule.note == AND || conditions.count() > 1 {
        return Filter { and: Some(conditions), one: Conditions::default() };
    }
    let prefix = match rule.note.as_str() {
        FILTER_PREFIX => Some(rule.prefix.clone()),
        _ => conditions.prefix,
    };
    Filter { and: None, one: Conditions { prefix, ..conditions } }
}

fn expiration(rule: &LifecycleRule) -> Option<Expiration> {
    let none = Expiration::default();
    match rule.expire {
        Some(Expiry::After(age)) => Some(Expiration { days: Some(days(age)), ..none }),
        Some(Expiry::At(time)) => Some(Expiration { date: Some(time), ..none }),
        None => rule.expire_markers.then_some(Expiration { expire_markers: Some(true), ..none }),
    }
}

fn noncurrent(expiry: NoncurrentExpiry) -> NoncurrentExpiration {
    let newer = i32::try_from(expiry.newer_versions).unwrap_or(i32::MAX);
    NoncurrentExpiration {
        days: Some(days(expiry.after)),
        newer_versions: Some(newer).filter(|number| *number > 0),
    }
}

fn length(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns an age in days, rounded up. Rules that were not set by an S3 request may have any age.
fn days(age: Duration) -> i32 {
    i32::try_from(age.as_secs().div_ceil(DAY.as_secs())).unwrap_or(i32::MAX)
}
