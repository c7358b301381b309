//! Makes the needles of events.

use std::sync::Arc;

use crate::event::Event;
use crate::format::{Head, Kind};
use crate::index::entry::Change;
use crate::index::quotas::Reserved;
use crate::index::version_names::{event_key, event_queue_bucket};
use crate::inner::Inner;
use crate::object::{ObjectInfo, VersionId};

/// The bytes of the fields that the store adds, without the names of the bucket and the key.
const OWN_BYTES: usize = 192;

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
    let room = OWN_BYTES + bucket.len() + object.key.len();
    let mut fields = event.fields.clone_with_room(room);
    fields.add("bucket", bucket);
    fields.add("key", &object.key);
    fields.add("bytes", object.bytes);
    fields.add("etag", object.etag);
    if object.version_id != VersionId::Null {
        fields.add("version", object.version_id);
    }
    let (bytes, fields) = (fields.as_bytes().len() as u64, Arc::new(fields));
    let change = |queue: &Arc<str>| {
        let version = inner.keyspace.clock.next();
        let mut head = Head::new(Kind::Object, &event_queue_bucket(queue), &event_key(version));
        (head.version, head.bytes) = (version, bytes);
        let event = Some(Arc::clone(&fields));
        Change { head, replaces: None, reserved: Reserved::nothing(), event }
    };
    event.queues.iter().map(change).collect()
}
