//! Ends the pipeline early for objects in memory: GET and HEAD of current objects, including
//! ranges. The response equals the operation's.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use haul_file_store::ObjectLocation;
use haul_http_engine::{Inline, Origin, RequestIdentity, ResponseHead};
use haul_store_pool::Pool;
use http::StatusCode;

use crate::access::bucket_policy::has_setting;
use crate::access::check::{Asked, authorize_read};
use crate::body::send::{self, ObjectBody};
use crate::front::Front;
use crate::front::pipeline::Received;
use crate::front::response::Counted;
use crate::hot::object::{HotContent, HotObject};
use crate::memory::PeerMemory;
use crate::metrics::Kind;
use crate::objects::range::{Selected, Selection};
use crate::objects::read::Read;
use crate::request::name::ObjectName;
use crate::request::operation::Operation;
use crate::settings::LOGGING;
use crate::settings::lifecycle::operations::expiration;
use crate::stored::versions::has_versions;

/// An object in memory, and the part that a request reads.
struct Found {
    object: Arc<HotObject>,
    selected: Selected,
    with_checksum: bool,
}

impl Front {
    /// Responds to a request for an object in memory. Otherwise records the decisions about the
    /// request in `received`.
    pub(super) fn respond_now(
        &self,
        received: &mut Received,
        origin: &Origin<'_, PeerMemory>,
        head: &mut ResponseHead<'_>,
    ) -> Option<Inline<Counted>> {
        let kind = match received.operation? {
            Operation::GetObject => Kind::Get,
            Operation::HeadObject => Kind::Head,
            _ => return None,
        };
        if received.visit.as_ref().is_some_and(|visit| visit.is_redirect()) {
            return None;
        }
        let verified = received.verified.as_ref().ok()?;
        // The hash of a body that was signed is compared with the body, which has not arrived yet.
        if !verified.payload.is_empty_or_unsigned() {
            return None;
        }
        let store = self.haul.store.load();
        let bucket = &received.head.name.bucket;
        // A response to a web page may need a CORS rule's headers, and an access log records more
        // than this path knows.
        if received.head.fields.has("origin") || has_setting(&store, bucket, LOGGING) {
            return None;
        }
        let asked = Asked {
            principal: verified.principal.clone(),
            operation: received.operation?,
            head: &received.head,
            connection: received.connection,
        };
        received.allowed = Some(authorize_read(&store, &asked)?);
        let found = self.find(&store, kind, received)?;
        if received.head.is_website && found.object.is_redirect {
            return None;
        }
        self.send(&store, kind, received, &found, origin, head)
    }

    /// Returns the request's object, and the part that the request reads; `None` if the operation
    /// must decide.
    fn find(&self, store: &Pool, kind: Kind, received: &mut Received) -> Option<Found> {
        let read = Read::from_request(&received.head).ok()?;
        let is_plain = read.version.is_none()
            && read.customer.is_none()
            && read.replaced.is_empty()
            && !matches!(read.selection, Selection::Part(_));
        let ObjectName { bucket, key } = &received.head.name;
        // In a bucket with versions, responses have the version ID.
        if !is_plain || has_versions(store, bucket) {
            return None;
        }
        let location = store.location(bucket, key)?;
        let path = format!("{bucket}/{key}");
        let object = match self.haul.hot.get(&path, location) {
            Some(object) => object,
            None => {
                let cached = self.read_cached(store, kind, &path, location);
                received.missed = cached.is_none().then_some(location);
                cached?
            }
        };
        let selected = read.select(&object.info, &object.tags, &[object.info.bytes]).ok()?;
        Some(Found { object, selected, with_checksum: read.with_checksum })
    }

    /// Reads an object from the page cache, only its head for HEAD, and caches it if it is whole.
    /// Leaves errors to the operation, which has the messages for them.
    fn read_cached(
        &self,
        store: &Pool,
        kind: Kind,
        path: &str,
        location: ObjectLocation,
    ) -> Option<Arc<HotObject>> {
        let (bucket, key) = path.split_once('/')?;
        if kind == Kind::Head {
            let object = store.head_cached(bucket, key).ok()??;
            return HotObject::new(location, &object, HotContent::Memory(Bytes::new()))
                .map(Arc::new);
        }
        let lock = || self.haul.hot.lock(store, path, location);
        if let Some(locked) = lock() {
            return Some(self.haul.hot.insert(path, locked));
        }
        let object = store.get_cached_at(bucket, key, location)?;
        if !object.is_in_memory() {
            return None;
        }
        // The first attempt may have started to read the object.
        if let Some(locked) = lock() {
            return Some(self.haul.hot.insert(path, locked));
        }
        let content = object.read(0, usize::try_from(object.info.bytes).ok()?).ok()?;
        let hot = HotObject::new(location, &object, HotContent::Memory(content))?;
        Some(self.haul.hot.insert(path, hot))
    }

    /// Writes the head of the response, and returns its body.
    fn send(
        &self,
        store: &Pool,
        kind: Kind,
        received: &Received,
        found: &Found,
        origin: &Origin<'_, PeerMemory>,
        head: &mut ResponseHead<'_>,
    ) -> Option<Inline<Counted>> {
        let Found { object, selected, with_checksum } = found;
        let metrics = &self.haul.metrics;
        let length = selected.bytes.end - selected.bytes.start;
        let sent_bytes = if kind == Kind::Head { 0 } else { length };
        let body = match &object.content {
            HotContent::Locked(locked) if sent_bytes > 0 => {
                let window = send::window(locked, &selected.bytes);
                let body = ObjectBody::Windows(VecDeque::from([window]));
                Inline::Body(Counted::object(body, metrics))
            }
            HotContent::Memory(content) if sent_bytes > 0 => {
                let at = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
                let content = content.slice(at(selected.bytes.start)..at(selected.bytes.end));
                Inline::Bytes(self.haul.memory.guard(origin.peer_state, content)?, ())
            }
            _ => Inline::Bytes(Bytes::new(), ()),
        };
        let id = self.ids.next();
        let bucket = &received.head.name.bucket;
        let expiration = expiration(store, bucket, &object.info, &object.tags).unwrap_or_default();
        let tags = object.tag_count.to_string();
        let length = length.to_string();
        let content_range = selected.content_range.as_deref().unwrap_or_default();
        let optional = [
            ("content-length", length.as_bytes()),
            ("content-range", content_range.as_bytes()),
            ("x-amz-request-id", &id[..]),
            ("x-amz-id-2", b"haul"),
            ("x-amz-expiration", expiration.as_bytes()),
            ("x-amz-tagging-count", if tags == "0" { &[] } else { tags.as_bytes() }),
        ];
        let is_whole = selected.content_range.is_none();
        let checksum = object.checksum.as_ref().filter(|_| *with_checksum && is_whole);
        let checksum = checksum.map(|checksum| checksum.fields()).into_iter().flatten();
        let fields = optional.into_iter().filter(|(_, value)| !value.is_empty()).chain(checksum);
        let status = if is_whole { StatusCode::OK } else { StatusCode::PARTIAL_CONTENT };
        let user = received.allowed.as_ref().and_then(|allowed| allowed.caller().access_key());
        head.identify(RequestIdentity { id, user });
        head.write_prepared(status.as_u16(), fields, &object.head).ok()?;
        if let Inline::Bytes(content, ()) = &body {
            metrics.sent(content.len() as u64);
        }
        metrics.answered(kind, status, Instant::now() - received.started);
        Some(body)
    }
}
