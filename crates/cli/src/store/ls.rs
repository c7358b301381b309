//! `haul store ls`: lists buckets or objects.

use haul_file_store::{
    BucketInfo, ListEntry, ListVersionsRequest, ObjectInfo, VersionId, VersionInfo,
    VersionListEntry,
};
use haul_store_pool::Pool;
use serde_json::{Value, json};

use super::{missing, objects};
use crate::args::LsArgs;
use crate::clock::rfc3339;
use crate::location::Location;
use crate::output::{Name, Output};
use crate::report::{Failure, OrFail, Result};

/// The number of versions that are listed by one call.
const PAGE_VERSIONS: usize = 1000;

pub(super) fn run(store: &Pool, args: &LsArgs) -> Result {
    let mut output = Output::new();
    match &args.place {
        None => {
            let cannot = || "cannot list the buckets".to_owned();
            if args.long || args.json {
                missing::refuse(store, cannot)?;
            }
            let buckets = store.buckets().or_fail(cannot)?;
            for bucket in buckets {
                output.line(bucket_line(&bucket, args))?;
            }
        }
        Some(location) if args.versions => versions(store, location, args, &mut output)?,
        Some(location) => objects(store, location, args, &mut output)?,
    }
    output.finish()
}

fn objects(store: &Pool, location: &Location, args: &LsArgs, output: &mut Output) -> Result {
    let Location { bucket, rest: prefix } = location;
    store.bucket(bucket).or_fail(|| format!("cannot list {location}"))?;
    let delimiter = (!args.recursive).then_some("/");
    let mut lines = 0_u64;
    objects::list(store, bucket, prefix, delimiter, |line| {
        lines += 1;
        output.line(line_of(bucket, &line, args))
    })?;
    if lines == 0 && !prefix.is_empty() {
        let message = format!("no key in {bucket} begins with \"{}\"", Name(prefix));
        return Err(Failure::new(message));
    }
    Ok(())
}

/// Prints all versions and delete markers of the keys with a prefix.
fn versions(store: &Pool, location: &Location, args: &LsArgs, output: &mut Output) -> Result {
    let Location { bucket, rest: prefix } = location;
    let mut last: Option<(String, VersionId)> = None;
    loop {
        let request = ListVersionsRequest {
            prefix,
            after: last.as_ref().map(|(key, _)| key.as_str()),
            after_version: last.as_ref().map(|(_, version)| *version),
            limit: PAGE_VERSIONS,
            ..ListVersionsRequest::default()
        };
        let page = store.list_versions(bucket, &request);
        let page = page.or_fail(|| format!("cannot list {location}"))?;
        for entry in page.entries {
            // Without a delimiter, there are no common prefixes.
            let VersionListEntry::Version(version) = entry else { continue };
            output.line(version_line(bucket, &version, args))?;
            last = Some((version.info.key, version.info.version_id));
        }
        if !page.more {
            return Ok(());
        }
    }
}

fn version_line(bucket: &str, version: &VersionInfo, args: &LsArgs) -> String {
    let VersionInfo { info, is_latest, is_delete_marker } = version;
    let (id, key) = (info.version_id.to_string(), Name(&info.key));
    if args.json {
        let mut json = object_json(bucket, info);
        json["version"] = id.into();
        json["latest"] = (*is_latest).into();
        json["delete_marker"] = (*is_delete_marker).into();
        return json.to_string();
    }
    let bytes = if *is_delete_marker { "deleted".to_owned() } else { info.bytes.to_string() };
    match args.long {
        true => format!("{bytes:>14}  {}  {id:>16}  {key}", rfc3339(info.modified)),
        false => format!("{id:>16}  {key}"),
    }
}

fn bucket_line(bucket: &BucketInfo, args: &LsArgs) -> String {
    if args.json {
        bucket_json(bucket).to_string()
    } else if args.long {
        let BucketInfo { name, created, objects, bytes } = bucket;
        format!("{bytes:>14}  {objects:>10}  {}  {name}", rfc3339(*created))
    } else {
        bucket.name.clone()
    }
}

fn line_of(bucket: &str, line: &ListEntry, args: &LsArgs) -> String {
    match line {
        ListEntry::Object(info) if args.json => object_json(bucket, info).to_string(),
        ListEntry::Object(info) if args.long => {
            format!("{:>14}  {}  {}", info.bytes, rfc3339(info.modified), Name(&info.key))
        }
        ListEntry::Prefix(prefix) if args.json => {
            json!({ "bucket": bucket, "prefix": prefix }).to_string()
        }
        ListEntry::Prefix(prefix) if args.long => {
            format!("{:>14}  {:24}  {}", "-", "-", Name(prefix))
        }
        ListEntry::Object(ObjectInfo { key: name, .. }) | ListEntry::Prefix(name) => {
            Name(name).to_string()
        }
    }
}

/// Returns a bucket as JSON.
pub(super) fn bucket_json(bucket: &BucketInfo) -> Value {
    json!({
        "bucket": bucket.name,
        "created": rfc3339(bucket.created),
        "objects": bucket.objects,
        "bytes": bucket.bytes,
    })
}

/// Returns an object as JSON.
pub(super) fn object_json(bucket: &str, info: &ObjectInfo) -> Value {
    json!({
        "bucket": bucket,
        "key": info.key,
        "bytes": info.bytes,
        "modified": rfc3339(info.modified),
        "etag": info.etag.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    const ETAG: &str = "d41d8cd98f00b204e9800998ecf8427e";

    fn args(long: bool, json: bool) -> LsArgs {
        LsArgs { place: None, long, recursive: false, versions: false, json }
    }

    fn object() -> ListEntry {
        let etag = ETAG.parse().unwrap();
        let (bytes, modified, version_id) = (7, UNIX_EPOCH, VersionId::Null);
        ListEntry::Object(ObjectInfo { key: "a\n".into(), bytes, modified, etag, version_id })
    }

    #[test]
    fn object_is_one_line_in_each_format() {
        let line = |long, json| line_of("b", &object(), &args(long, json));
        assert_eq!(line(false, false), "a\\n");
        assert_eq!(line(true, false), "             7  1970-01-01T00:00:00.000Z  a\\n");
        let json = format!(
            "{{\"bucket\":\"b\",\"bytes\":7,\"etag\":\"{ETAG}\",\"key\":\"a\\n\",\
             \"modified\":\"1970-01-01T00:00:00.000Z\"}}"
        );
        assert_eq!(line(false, true), json);
    }

    #[test]
    fn prefixes_and_objects_share_columns() {
        let prefix = ListEntry::Prefix("a/".into());
        let line = |long, json| line_of("b", &prefix, &args(long, json));
        assert_eq!(line(false, false), "a/");
        assert_eq!(line(false, true), "{\"bucket\":\"b\",\"prefix\":\"a/\"}");
        let column = line_of("b", &object(), &args(true, false)).find("a\\n");
        assert_eq!(line(true, false).find("a/"), column);
    }
}
