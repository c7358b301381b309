//! Validates and converts the rules that a client sends. Pure.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, SystemTime};

use haul_file_store::{
    Expiry, LIFECYCLE_RULES_MAX, Lifecycle, LifecycleRule, NoncurrentExpiry, Tags,
};

use super::configuration::{
    Abort, Conditions, DISABLED, ENABLED, Expiration, Filter, LifecycleConfiguration,
    NoncurrentExpiration, Rule,
};
use super::{AND, DAY, FILTER_PREFIX, RULE_PREFIX};
use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::stored::tags;
use crate::xml::reader::malformed;

const ID_CHARS_MAX: usize = 255;
const PREFIX_BYTES_MAX: usize = 1024;

/// The maximum number of noncurrent versions that a rule keeps, as in S3.
const NEWER_VERSIONS_MAX: u32 = 100;

/// Converts S3's rules to the store's lifecycle.
pub(super) fn lifecycle(configuration: LifecycleConfiguration) -> S3Result<Lifecycle> {
    let rules = configuration.rules;
    if rules.is_empty() {
        return Err(malformed("a lifecycle needs at least one <Rule>"));
    }
    if rules.len() > LIFECYCLE_RULES_MAX {
        let message = format!("A lifecycle has at most {LIFECYCLE_RULES_MAX} rules");
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }
    let rules = rules.into_iter().map(rule).collect::<S3Result<Vec<_>>>()?;
    let mut ids: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    ids.sort_unstable();
    if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("Rule ID must be unique. Found same ID for two rules: {}", pair[0]);
        return Err(refuse(S3ErrorCode::InvalidArgument, message));
    }
    Ok(Lifecycle { rules })
}

fn rule(rule: Rule) -> S3Result<LifecycleRule> {
    check_supported(&rule)?;
    let enabled = match rule.status.as_str() {
        ENABLED => true,
        DISABLED => false,
        other => {
            return Err(malformed(&format!("<Status> must be Enabled or Disabled, not {other:?}")));
        }
    };
    let id = rule.id.filter(|id| !id.is_empty()).unwrap_or_else(new_id);
    if id.chars().count() > ID_CHARS_MAX {
        let message = format!("ID length should not exceed allowed limit of {ID_CHARS_MAX}");
        return Err(refuse(S3ErrorCode::InvalidArgument, message));
    }
    let filter = match (rule.filter, rule.prefix) {
        (Some(_), Some(_)) => {
            return Err(malformed("<Rule> cannot have both a <Filter> and a <Prefix>"));
        }
        (None, None) => return Err(malformed("<Rule> must have a <Filter> or a <Prefix>")),
        (Some(filter), None) => checked_filter(filter)?,
        (None, Some(prefix)) => {
            CheckedFilter { prefix, note: RULE_PREFIX, ..CheckedFilter::default() }
        }
    };
    filter.check()?;
    let expiration = rule.expiration.as_ref();
    let expire_markers = expiration.and_then(|expiration| expiration.expire_markers) == Some(true);
    let expire = expiration.map(expiry).transpose()?.flatten();
    let expire_noncurrent = rule.noncurrent.map(noncurrent).transpose()?;
    let abort_uploads_after = match rule.abort {
        Some(Abort { days }) => Some(positive_days(
            days.unwrap_or(0),
            "'DaysAfterInitiation' for AbortIncompleteMultipartUpload action",
        )?),
        None => None,
    };
    let expires = expire.is_some() || expire_noncurrent.is_some() || expire_markers;
    if !expires && abort_uploads_after.is_none() {
        let message = "At least one action needs to be specified in a rule";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }
    if abort_uploads_after.is_some() && filter.has_sizes() {
        let message = "AbortIncompleteMultipartUpload cannot be specified with object sizes";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }
    if !filter.tags.is_empty() && (abort_uploads_after.is_some() || expire_markers) {
        let message = "AbortIncompleteMultipartUpload and ExpiredObjectDeleteMarker cannot be \
                       specified with tags";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }
    Ok(LifecycleRule {
        id,
        enabled,
        prefix: filter.prefix,
        bytes_greater_than: filter.greater_than,
        bytes_less_than: filter.less_than,
        tags: filter.tags,
        expire,
        expire_noncurrent,
        expire_markers,
        abort_uploads_after,
        round_up_to: DAY,
        note: filter.note.to_owned(),
    })
}

/// Rejects rules for storage classes, which are not implemented.
fn check_supported(rule: &Rule) -> S3Result<()> {
    if rule.transitions.is_empty() {
        return Ok(());
    }
    // A rule that S3 rejects, too, gets S3's error.
    rule.transitions.iter().flatten().try_for_each(|date| midnight(*date).map(drop))?;
    let message = "Transitions are not implemented: there is only one storage class";
    Err(refuse(S3ErrorCode::NotImplemented, message))
}

/// The conditions that a rule has for objects.
#[derive(Debug, Default)]
struct CheckedFilter {
    prefix: String,
    greater_than: Option<u64>,
    less_than: Option<u64>,
    tags: Tags,
    /// The filter's form, which `render` restores.
    note: &'static str,
}

fn checked_filter(Filter { and, one }: Filter) -> S3Result<CheckedFilter> {
    if one.count() + usize::from(and.is_some()) > 1 {
        return Err(malformed("<Filter> has one condition, or <And> to combine several"));
    }
    if and.as_ref().is_some_and(|and| and.count() < 2) {
        return Err(malformed("<And> has at least two conditions"));
    }
    let (conditions, note) = match and {
        Some(and) => (and, AND),
        None if one.prefix.is_some() => (one, FILTER_PREFIX),
        None => (one, ""),
    };
    let Conditions { prefix, greater_than, less_than, tags } = conditions;
    Ok(CheckedFilter {
        prefix: prefix.unwrap_or_default(),
        greater_than: greater_than.map(size).transpose()?,
        less_than: less_than.map(size).transpose()?,
        tags: tags::object_tags(tags.into_iter())?,
        note,
    })
}

impl CheckedFilter {
    fn has_sizes(&self) -> bool {
        self.greater_than.is_some() || self.less_than.is_some()
    }

    fn check(&self) -> S3Result<()> {
        if self.prefix.len() > PREFIX_BYTES_MAX {
            let message = format!("The maximum size of a prefix is {PREFIX_BYTES_MAX}");
            return Err(refuse(S3ErrorCode::InvalidRequest, message));
        }
        match (self.greater_than, self.less_than) {
            (_, Some(0)) => {
                let message = "'ObjectSizeLessThan' has to be greater than 0";
                Err(refuse(S3ErrorCode::InvalidRequest, message))
            }
            (Some(greater), Some(less)) if less <= greater.saturating_add(1) => {
                let message = "'ObjectSizeLessThan' has to be greater than 'ObjectSizeGreaterThan'";
                Err(refuse(S3ErrorCode::InvalidRequest, message))
            }
            _ => Ok(()),
        }
    }
}

fn size(bytes: i64) -> S3Result<u64> {
    u64::try_from(bytes).map_err(|_negative| {
        refuse(S3ErrorCode::InvalidRequest, "The size of an object cannot be negative")
    })
}

fn expiry(expiration: &Expiration) -> S3Result<Option<Expiry>> {
    match (expiration.days, expiration.date) {
        (None, None) if expiration.expire_markers.is_some() => Ok(None),
        _ if expiration.expire_markers == Some(true) => Err(malformed(
            "<ExpiredObjectDeleteMarker> cannot be specified with <Days> or a <Date>",
        )),
        (Some(days), None) => {
            Ok(Some(Expiry::After(positive_days(days, "'Days' for Expiration action")?)))
        }
        (None, Some(date)) => {
            let date = midnight(date)?;
            Ok(Some(Expiry::At(date.max(SystemTime::UNIX_EPOCH))))
        }
        _ => Err(malformed("<Expiration> must have either <Days> or a <Date>")),
    }
}

/// Returns the date. Fails unless it is at midnight UTC.
fn midnight(date: SystemTime) -> S3Result<SystemTime> {
    let distance = date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_else(|e| e.duration());
    if distance.as_nanos().is_multiple_of(DAY.as_nanos()) {
        return Ok(date);
    }
    Err(refuse(S3ErrorCode::InvalidArgument, "'Date' must be at midnight GMT"))
}

fn noncurrent(expiration: NoncurrentExpiration) -> S3Result<NoncurrentExpiry> {
    let what = "'NoncurrentDays' for NoncurrentVersionExpiration action";
    let after = positive_days(expiration.days.unwrap_or(0), what)?;
    let newer_versions = match expiration.newer_versions.map(u32::try_from) {
        None => 0,
        Some(Ok(number)) if (1..=NEWER_VERSIONS_MAX).contains(&number) => number,
        Some(_) => {
            let message =
                format!("'NewerNoncurrentVersions' must be between 1 and {NEWER_VERSIONS_MAX}");
            return Err(refuse(S3ErrorCode::InvalidArgument, message));
        }
    };
    Ok(NoncurrentExpiry { after, newer_versions })
}

fn positive_days(days: i32, what: &str) -> S3Result<Duration> {
    match u32::try_from(days) {
        Ok(days) if days > 0 => Ok(DAY * days),
        _ => {
            let message = format!("{what} must be a positive integer");
            Err(refuse(S3ErrorCode::InvalidArgument, message))
        }
    }
}

/// Returns an ID for a rule without one: 64 random bits.
fn new_id() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}
