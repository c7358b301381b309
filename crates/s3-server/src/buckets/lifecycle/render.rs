//! Conversion of the store's rules to S3's rules, in the form in which the client sent them. Pure.

use std::time::Duration;

use haul_file_store::{Expiry, Lifecycle, LifecycleRule, NoncurrentExpiry};
use s3s::dto::{
    self, AbortIncompleteMultipartUpload, ExpirationStatus, LifecycleExpiration,
    LifecycleRuleAndOperator, LifecycleRuleFilter, NoncurrentVersionExpiration,
};

use super::{AND, DAY, FILTER_PREFIX, RULE_PREFIX};
use crate::times::timestamp;

/// Converts a lifecycle of the store to S3's rules.
pub(super) fn rules(lifecycle: &Lifecycle) -> Vec<dto::LifecycleRule> {
    lifecycle.rules.iter().map(rule).collect()
}

fn rule(rule: &LifecycleRule) -> dto::LifecycleRule {
    let status = match rule.enabled {
        true => ExpirationStatus::ENABLED,
        false => ExpirationStatus::DISABLED,
    };
    let abort = rule
        .abort_uploads_after
        .map(|age| AbortIncompleteMultipartUpload { days_after_initiation: Some(days(age)) });
    let is_of_rule = rule.note == RULE_PREFIX;
    dto::LifecycleRule {
        abort_incomplete_multipart_upload: abort,
        expiration: expiration(rule),
        filter: (!is_of_rule).then(|| filter(rule)),
        id: Some(rule.id.clone()),
        noncurrent_version_expiration: rule.expire_noncurrent.map(noncurrent),
        noncurrent_version_transitions: None,
        prefix: is_of_rule.then(|| rule.prefix.clone()),
        status: ExpirationStatus::from_static(status),
        transitions: None,
    }
}

fn filter(rule: &LifecycleRule) -> LifecycleRuleFilter {
    let greater_than = rule.bytes_greater_than.map(length);
    let less_than = rule.bytes_less_than.map(length);
    let prefix = Some(&rule.prefix).filter(|prefix| !prefix.is_empty());
    let mut tags = rule
        .tags
        .iter()
        .map(|(key, value)| dto::Tag { key: Some(key.clone()), value: Some(value.clone()) });
    let conditions = [greater_than.is_some(), less_than.is_some(), prefix.is_some()];
    // Rules that were not set over S3 have no note.
    let given = conditions.into_iter().filter(|given| *given).count() + rule.tags.len();
    let is_and = rule.note == AND || given > 1;
    if is_and {
        let and = LifecycleRuleAndOperator {
            object_size_greater_than: greater_than,
            object_size_less_than: less_than,
            prefix: prefix.cloned(),
            tags: Some(tags.collect()).filter(|tags: &Vec<_>| !tags.is_empty()),
        };
        return LifecycleRuleFilter { and: Some(and), ..LifecycleRuleFilter::default() };
    }
    let has_prefix = prefix.is_some() || rule.note == FILTER_PREFIX;
    LifecycleRuleFilter {
        and: None,
        object_size_greater_than: greater_than,
        object_size_less_than: less_than,
        prefix: has_prefix.then(|| rule.prefix.clone()),
        tag: tags.next(),
    }
}

fn expiration(rule: &LifecycleRule) -> Option<LifecycleExpiration> {
    let none = LifecycleExpiration::default();
    match rule.expire {
        Some(Expiry::After(age)) => Some(LifecycleExpiration { days: Some(days(age)), ..none }),
        Some(Expiry::At(time)) => Some(LifecycleExpiration { date: Some(timestamp(time)), ..none }),
        None => rule
            .expire_markers
            .then_some(LifecycleExpiration { expired_object_delete_marker: Some(true), ..none }),
    }
}

fn noncurrent(expiry: NoncurrentExpiry) -> NoncurrentVersionExpiration {
    let newer = i32::try_from(expiry.newer_versions).unwrap_or(i32::MAX);
    NoncurrentVersionExpiration {
        newer_noncurrent_versions: Some(newer).filter(|number| *number > 0),
        noncurrent_days: Some(days(expiry.after)),
    }
}

fn length(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns an age in days, rounded up. Rules that were not set over S3 may have any age.
fn days(age: Duration) -> i32 {
    i32::try_from(age.as_secs().div_ceil(DAY.as_secs())).unwrap_or(i32::MAX)
}
