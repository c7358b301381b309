//! Makes the needles of events.

use std::sync::Arc;

use crate::format::{Head, Kind, encode_attributes};
use crate::index::entry::Change;
use crate::index::quotas::Reserved;
use crate::index::version_names::{event_key, event_queue_bucket};
use crate::inner::Inner;
use crate::object::{Etag, Event, ObjectInfo, VersionId};

/// Returns the needles of an event about an object, for the record of the change. The caller has
/// locked the object's key, so that the events of a key have the order of its changes.
pub(crate) fn event_changes(
    inner: &Inner,
    event: Option<&Event>,
    bucket: &str,
    object: impl FnOnce() -> ObjectInfo,
) -> Vec<Change> {
    let Some(event) = event.filter(|event| !event.queues.is_empty()) else { return Vec::new() };
    let object = object();
    let mut attributes = event.attributes.clone();
    attributes.set("bucket", bucket);
    attributes.set("key", object.key);
    attributes.set("bytes", object.bytes.to_string());
    attributes.set("etag", object.etag.to_string());
    if object.version_id != VersionId::Null {
        attributes.set("version", object.version_id.to_string());
    }
    let mut data = Vec::new();
    encode_attributes(&attributes, &mut data);
    let (bytes, md5) = (data.len() as u64, haul_md5_lanes::digest(&data));
    let attributes = Arc::new(attributes);
    let change = |queue: &Arc<str>| {
        let version = inner.keyspace.clock.next();
        let mut head = Head::new(Kind::Object, &event_queue_bucket(queue), &event_key(version));
        (head.version, head.bytes, head.etag) = (version, bytes, Etag { md5, parts: 0 });
        let event = Some(Arc::clone(&attributes));
        Change { head, replaces: None, reserved: Reserved::nothing(), event }
    };
    event.queues.iter().map(change).collect()
}
