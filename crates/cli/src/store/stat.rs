//! `haul store stat`: shows the properties of a bucket or an object.

use haul_file_store::{BucketInfo, Object};
use haul_store_pool::Pool;
use serde_json::{Map, Value};

use super::ls::{bucket_json, object_json};
use super::missing;
use crate::args::StatArgs;
use crate::clock::rfc3339;
use crate::output::{Name, Output};
use crate::report::{OrFail, Result};
use crate::units::Bytes;

pub(super) fn run(store: &Pool, args: &StatArgs) -> Result {
    let (bucket, key) = (args.place.bucket.as_str(), args.place.rest.as_str());
    let cannot = || format!("cannot stat {}", args.place);
    let mut output = Output::new();
    if key.is_empty() {
        missing::refuse(store, cannot)?;
        let info = store.bucket(bucket).or_fail(cannot)?;
        if args.json {
            output.line(bucket_json(&info))?;
        } else {
            bucket_lines(&mut output, &info)?;
        }
    } else {
        let object = store.head(bucket, key).or_fail(cannot)?;
        if args.json {
            output.line(json(bucket, &object))?;
        } else {
            object_lines(&mut output, bucket, &object)?;
        }
    }
    output.finish()
}

fn bucket_lines(output: &mut Output, info: &BucketInfo) -> Result {
    output.line(format_args!("bucket:   {}", info.name))?;
    output.line(format_args!("created:  {}", rfc3339(info.created)))?;
    output.line(format_args!("objects:  {}", info.objects))?;
    output.line(format_args!("bytes:    {} ({})", info.bytes, Bytes(info.bytes)))
}

fn object_lines(output: &mut Output, bucket: &str, object: &Object) -> Result {
    let info = &object.info;
    output.line(format_args!("bucket:   {bucket}"))?;
    output.line(format_args!("key:      {}", Name(&info.key)))?;
    output.line(format_args!("bytes:    {} ({})", info.bytes, Bytes(info.bytes)))?;
    output.line(format_args!("modified: {}", rfc3339(info.modified)))?;
    output.line(format_args!("etag:     {}", info.etag))?;
    for (name, value) in object.attributes.iter() {
        output.line(format_args!("{}: {}", Name(name), Name(value)))?;
    }
    Ok(())
}

/// Returns an object and its attributes as JSON.
pub(super) fn json(bucket: &str, object: &Object) -> Value {
    let text = |value: &str| Value::String(value.to_owned());
    let attributes: Map<String, Value> =
        object.attributes.iter().map(|(name, value)| (name.to_owned(), text(value))).collect();
    let mut json = object_json(bucket, &object.info);
    json["attributes"] = Value::Object(attributes);
    json
}
