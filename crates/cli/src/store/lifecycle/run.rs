//! `haul store lifecycle run`: deletes expired objects and aborts stale uploads.

use haul_file_store::{ExpiredEntry, SweepReport};
use haul_store_pool::Pool;
use serde_json::{Value, json};

use crate::args::LifecycleRunArgs;
use crate::clock::rfc3339;
use crate::output::{Name, Output};
use crate::report::{OrFail, Result};
use crate::units::{Bytes, Count};

pub(super) fn run(store: &Pool, args: &LifecycleRunArgs) -> Result {
    let mut output = Output::new();
    for bucket in buckets(store, args)? {
        let report = if args.dry_run {
            list(store, &bucket, args, &mut output)?
        } else {
            let cannot = || format!("cannot apply the lifecycle rules of {bucket}");
            store.expire_now(&bucket).or_fail(cannot)?
        };
        output.line(summary(&bucket, &report, args))?;
        output.send()?;
    }
    output.finish()
}

/// Returns the buckets to apply rules in: the given one, or all that have rules.
fn buckets(store: &Pool, args: &LifecycleRunArgs) -> Result<Vec<String>> {
    if let Some(bucket) = &args.bucket {
        return Ok(vec![bucket.clone()]);
    }
    let mut with_rules = Vec::new();
    for bucket in store.buckets().or_fail(|| "cannot list the buckets".to_owned())? {
        let cannot = || format!("cannot read the lifecycle rules of {}", bucket.name);
        if !store.lifecycle(&bucket.name).or_fail(cannot)?.rules.is_empty() {
            with_rules.push(bucket.name);
        }
    }
    Ok(with_rules)
}

/// Prints what would be deleted and aborted in a bucket.
fn list(
    store: &Pool,
    bucket: &str,
    args: &LifecycleRunArgs,
    output: &mut Output,
) -> Result<SweepReport> {
    let mut printed = Ok(());
    let searched = store.expirable(bucket, &mut |expirable| {
        printed = output.line(match args.json {
            true => expirable_json(bucket, &expirable).to_string(),
            false => expirable_line(bucket, &expirable),
        });
        printed.is_ok()
    });
    printed?;
    searched.or_fail(|| format!("cannot apply the lifecycle rules of {bucket}"))
}

fn expirable_line(bucket: &str, expirable: &ExpiredEntry) -> String {
    match expirable {
        ExpiredEntry::Object { info, rule } => {
            let (key, modified) = (Name(&info.key), rfc3339(info.modified));
            format!(
                "{bucket}/{key}: {}, modified {modified}, rule {}",
                Bytes(info.bytes),
                Name(rule)
            )
        }
        ExpiredEntry::Version { info, is_delete_marker, rule } => {
            let (key, stored) = (Name(&info.key), rfc3339(info.modified));
            let kind = if *is_delete_marker { "delete marker" } else { "version" };
            format!(
                "{bucket}/{key}: {kind} {}, {}, stored {stored}, rule {}",
                info.version_id,
                Bytes(info.bytes),
                Name(rule)
            )
        }
        ExpiredEntry::Upload { id, key, started, rule } => {
            let (key, started) = (Name(key), rfc3339(*started));
            format!("{bucket}/{key}: upload {id}, started {started}, rule {}", Name(rule))
        }
    }
}

fn expirable_json(bucket: &str, expirable: &ExpiredEntry) -> Value {
    match expirable {
        ExpiredEntry::Object { info, rule } => json!({
            "bucket": bucket,
            "key": info.key,
            "bytes": info.bytes,
            "modified": rfc3339(info.modified),
            "rule": rule,
        }),
        ExpiredEntry::Version { info, is_delete_marker, rule } => json!({
            "bucket": bucket,
            "key": info.key,
            "version": info.version_id.to_string(),
            "delete_marker": is_delete_marker,
            "bytes": info.bytes,
            "modified": rfc3339(info.modified),
            "rule": rule,
        }),
        ExpiredEntry::Upload { id, key, started, rule } => json!({
            "bucket": bucket,
            "key": key,
            "upload": id,
            "started": rfc3339(*started),
            "rule": rule,
        }),
    }
}

fn summary(bucket: &str, report: &SweepReport, args: &LifecycleRunArgs) -> String {
    if args.json {
        return json!({
            "bucket": bucket,
            "dry_run": args.dry_run,
            "scanned_keys": report.scanned_keys,
            "tag_reads": report.tag_reads,
            "expired_objects": report.expired_objects,
            "expired_versions": report.expired_versions,
            "expired_bytes": report.expired_bytes,
            "aborted_uploads": report.aborted_uploads,
            "skipped": report.skipped,
            "locked": report.locked,
        })
        .to_string();
    }
    let (expired, aborted) = match args.dry_run {
        true => ("would delete", "would abort"),
        false => ("deleted", "aborted"),
    };
    let skipped = match report.skipped {
        0 => String::new(),
        skipped => format!(", skipped {skipped} that damage may hide newer states of"),
    };
    let versions = match report.expired_versions {
        0 => String::new(),
        versions => format!(" and {}", Count(versions, "version")),
    };
    let locked = match report.locked {
        0 => String::new(),
        locked => format!(", kept {}", Count(locked, "locked version")),
    };
    format!(
        "{bucket}: {expired} {}{versions} ({}), {aborted} {}{skipped}{locked}",
        Count(report.expired_objects, "object"),
        Bytes(report.expired_bytes),
        Count(report.aborted_uploads, "upload"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_states_what_was_or_would_be_done() {
        let report = SweepReport {
            scanned_keys: 9,
            expired_objects: 1,
            expired_bytes: 1024,
            aborted_uploads: 2,
            skipped: 3,
            ..SweepReport::default()
        };
        let args = |dry_run, json| LifecycleRunArgs { bucket: None, dry_run, json };
        let expected = "b: deleted 1 object (1 KiB), aborted 2 uploads, skipped 3 that damage may \
                        hide newer states of";
        assert_eq!(summary("b", &report, &args(false, false)), expected);
        let locked = SweepReport { expired_versions: 1, skipped: 0, locked: 4, ..report };
        let expected = "b: deleted 1 object and 1 version (1 KiB), aborted 2 uploads, kept 4 locked \
                        versions";
        assert_eq!(summary("b", &locked, &args(false, false)), expected);
        let report = SweepReport { skipped: 0, ..report };
        let expected = "b: would delete 1 object (1 KiB), would abort 2 uploads";
        assert_eq!(summary("b", &report, &args(true, false)), expected);
        let json: Value = serde_json::from_str(&summary("b", &report, &args(true, true))).unwrap();
        assert_eq!((&json["dry_run"], &json["expired_objects"]), (&json!(true), &json!(1)));
    }
}
