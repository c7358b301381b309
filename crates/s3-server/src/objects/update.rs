//! Changes attributes of objects and versions.

use std::cell::Cell;

use haul_file_store::{Attributes, Error, Event, Object, ObjectInfo, TargetBucket, VersionId};
use haul_store_pool::Pool;

use crate::encryption::content::listed_bytes;
use crate::errors::{S3Error, S3Result};
use crate::events::new::set_size;
use crate::request::name::ObjectName;
use crate::stored::versions::refused;
use crate::stored::{attributes, versions};

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
    event: Option<Event>,
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
    let event = sized(store, name, version, event);
    let target = TargetBucket::from(bucket).with_event(event.as_ref());
    let updated = store.update_attributes(target, key, version, &change);
    match (updated, failure.take()) {
        (Err(_), Some(error)) => Err(error),
        (updated, _) => updated.map_err(|error| refused(store, bucket, key, error)),
    }
}

/// Returns the event with the object's length as clients see it, if that is not the stored one.
fn sized(
    store: &Pool,
    name: &ObjectName,
    version: Option<VersionId>,
    mut event: Option<Event>,
) -> Option<Event> {
    let ObjectName { bucket, key } = name;
    // The change fails, too, if the object cannot be read.
    if event.is_some()
        && let Ok(Object { info, .. }) = versions::head(store, bucket, key, version)
        && info.etag.is_encoded()
        && let Ok(bytes) = listed_bytes(store, bucket, &info, version)
    {
        set_size(&mut event, bytes);
    }
    event
}
