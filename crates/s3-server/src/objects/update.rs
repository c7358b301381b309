//! Changes attributes of objects and versions.

use std::cell::Cell;

use haul_file_store::{Attributes, Error, Event, ObjectInfo, TargetBucket, VersionId};
use haul_store_pool::Pool;

use crate::errors::{S3Error, S3Result};
use crate::request::name::ObjectName;
use crate::stored::attributes;
use crate::stored::versions::refused;

/// Changes the attributes of an object or version in place, while no other client can change it.
/// The version ID and the modification time stay; `event` is queued. The change is durable when
/// this returns.
///
/// # Errors
/// Fails like `change`, and if the attributes become too large.
pub(crate) fn update(
    store: &Pool,
    name: &ObjectName,
    version: Option<VersionId>,
    event: Option<&Event>,
    change: impl Fn(&mut Attributes) -> S3Result<()>,
) -> S3Result<ObjectInfo> {
    let failure: Cell<Option<S3Error>> = Cell::new(None);
    let change = |attributes: &mut Attributes| {
        change(attributes).and_then(|()| attributes::check(attributes)).map_err(|error| {
            failure.set(Some(error));
            Error::Invalid { what: "the attributes cannot be changed".into() }
        })
    };
    let ObjectName { bucket, key } = name;
    let target = TargetBucket::from(bucket).with_event(event);
    let updated = store.update_attributes(target, key, version, &change);
    match (updated, failure.take()) {
        (Err(_), Some(error)) => Err(error),
        (updated, _) => updated.map_err(|error| refused(store, bucket, key, error)),
    }
}
