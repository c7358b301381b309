//! `haul store lifecycle show`: prints the rules of a bucket.

use std::time::Duration;

use haul_file_store::{Expiry, LifecycleRule, NoncurrentExpiry};
use haul_s3_server::{lifecycle_to_json, lifecycle_to_xml};
use haul_store_pool::Pool;

use crate::args::LifecycleShowArgs;
use crate::clock::rfc3339;
use crate::output::{Name, Output};
use crate::report::{Failure, OrFail, Result};
use crate::units::Bytes;

pub(super) fn run(store: &Pool, args: &LifecycleShowArgs) -> Result {
    let bucket = &args.bucket;
    let lifecycle = store
        .lifecycle(bucket)
        .or_fail(|| format!("cannot read the lifecycle rules of {bucket}"))?;
    if lifecycle.rules.is_empty() {
        return Err(Failure::new(format!("bucket {bucket} has no lifecycle rules")));
    }
    let mut output = Output::new();
    if args.json {
        output.line(format_args!("{:#}", lifecycle_to_json(&lifecycle)))?;
    } else if args.xml {
        output.line(lifecycle_to_xml(&lifecycle))?;
    } else {
        lifecycle.rules.iter().try_for_each(|rule| output.line(line(rule)))?;
    }
    output.finish()
}

/// Describes a rule in one line.
fn line(rule: &LifecycleRule) -> String {
    let mut actions = Vec::new();
    match rule.expire {
        Some(Expiry::After(age)) => actions.push(format!("expire objects after {}", span(age))),
        Some(Expiry::At(time)) => actions.push(format!("expire objects on {}", rfc3339(time))),
        None => {}
    }
    if let Some(NoncurrentExpiry { after, newer_versions }) = rule.expire_noncurrent {
        let kept = match newer_versions {
            0 => String::new(),
            number => format!(", except the {number} newest"),
        };
        actions.push(format!("expire noncurrent versions after {}{kept}", span(after)));
    }
    if rule.expire_markers {
        actions.push("remove delete markers without other versions".to_owned());
    }
    if let Some(age) = rule.abort_uploads_after {
        actions.push(format!("abort uploads after {}", span(age)));
    }
    let mut scope = match rule.prefix.as_str() {
        "" => "all keys".to_owned(),
        prefix => format!("keys that begin with \"{}\"", Name(prefix)),
    };
    if let Some(limit) = rule.bytes_greater_than {
        scope.push_str(&format!(", larger than {}", Bytes(limit)));
    }
    if let Some(limit) = rule.bytes_less_than {
        scope.push_str(&format!(", smaller than {}", Bytes(limit)));
    }
    for (key, value) in &rule.tags {
        scope.push_str(&format!(", tagged {}={}", Name(key), Name(value)));
    }
    let disabled = if rule.enabled { "" } else { " (disabled)" };
    format!("{}{disabled}: {}; {scope}", Name(&rule.id), actions.join(", "))
}

/// Formats an age in days if it has whole days, as all rules of S3 have, otherwise in seconds.
fn span(age: Duration) -> String {
    const DAY_SECONDS: u64 = 24 * 3600;
    match age.as_secs() {
        DAY_SECONDS => "1 day".to_owned(),
        seconds if seconds > 0 && seconds % DAY_SECONDS == 0 => {
            format!("{} days", seconds / DAY_SECONDS)
        }
        _ => format!("{} s", age.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn rule_is_one_line() {
        let rule = LifecycleRule {
            id: "a\n".to_owned(),
            enabled: true,
            prefix: "logs/".to_owned(),
            expire: Some(Expiry::After(Duration::from_hours(48))),
            abort_uploads_after: Some(Duration::from_hours(24)),
            ..LifecycleRule::default()
        };
        let expected = "a\\n: expire objects after 2 days, abort uploads after 1 day; keys that \
                        begin with \"logs/\"";
        assert_eq!(line(&rule), expected);
        let after = Duration::from_hours(24 * 30);
        let rule = LifecycleRule {
            id: "v".to_owned(),
            enabled: true,
            expire_noncurrent: Some(NoncurrentExpiry { after, newer_versions: 3 }),
            expire_markers: true,
            ..LifecycleRule::default()
        };
        let expected = "v: expire noncurrent versions after 30 days, except the 3 newest, remove \
                        delete markers without other versions; all keys";
        assert_eq!(line(&rule), expected);
        let rule = LifecycleRule {
            id: "b".to_owned(),
            expire: Some(Expiry::At(UNIX_EPOCH)),
            bytes_greater_than: Some(1 << 20),
            bytes_less_than: Some(1 << 30),
            tags: [("class".to_owned(), "temp".to_owned())].into(),
            ..LifecycleRule::default()
        };
        let expected = "b (disabled): expire objects on 1970-01-01T00:00:00.000Z; all keys, larger \
                        than 1 MiB, smaller than 1 GiB, tagged class=temp";
        assert_eq!(line(&rule), expected);
    }
}
