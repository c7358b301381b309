//! Responds to plain requests for cached objects at once, without the S3 service: GET and HEAD
//! without conditions or options. The response is the one that the service would give; all
//! other requests, and all that fail, are left to it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use haul_file_store::{ObjectLocation, Store};
use haul_http_engine::{Inline, Origin, RequestIdentity, ResponseHead};
use haul_http1::{Request, Target};
use hyper::StatusCode;
use s3s::dto::Range;
use s3s::path::check_bucket_name;

use crate::access::rights::Right;
use crate::body::memory::PeerMemory;
use crate::body::send::ObjectBody;
use crate::buckets::lifecycle::operations::expiration;
use crate::front::Front;
use crate::front::hot::object::{HotContent, HotObject};
use crate::front::response::Counted;
use crate::front::text::decode;
use crate::metrics::Kind;
use crate::objects::range::{Selected, select};
use crate::objects::versions::has_versions;

/// Headers that a plain request may have beside those of HTTP itself.
const PLAIN_HEADERS: [&str; 5] = [
    CHECKSUM_MODE,
    "x-amz-content-sha256",
    "x-amz-date",
    "x-amz-security-token",
    "x-amz-user-agent",
];

/// Requests the checksum of the object, whatever the value.
const CHECKSUM_MODE: &str = "x-amz-checksum-mode";

impl Front {
    /// Responds to a plain request for a cached object, if it is one.
    pub(crate) fn respond_inline(
        &self,
        request: &Request<'_>,
        origin: &Origin<'_, PeerMemory>,
        head: &mut ResponseHead<'_>,
    ) -> Option<Inline<Counted>> {
        let started = Instant::now();
        let kind = match request.method {
            "GET" => Kind::Get,
            "HEAD" => Kind::Head,
            _ => return None,
        };
        let Target::Origin(target) = request.target else { return None };
        if !is_plain(request) {
            return None;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = decode(path)?;
        let caller = self.requester(request, &path, query)?;
        let path = self.domains.path_of(request.fields.first("host"), path);
        let path = path.strip_prefix('/')?;
        let (bucket, key) = names(path)?;
        let store = self.store.load();
        // The service has the error for a client without the right, and records requests to buckets
        // with an access log.
        caller.may_plainly(&store, Right::Read, bucket, key).then_some(())?;
        let place = place_of(&store, bucket, key)?;
        let object = match self.hot.get(path, place) {
            Some(object) => object,
            None => self.read_cached(&store, kind, path, place)?,
        };
        let selected = selected(request, kind, object.info.bytes)?;
        let bytes = match kind {
            Kind::Head => 0,
            _ => selected.bytes.end - selected.bytes.start,
        };
        let body = match &object.content {
            HotContent::File(file) if bytes > 0 => {
                let window = file.window(selected.bytes.start, bytes);
                let body = ObjectBody::Windows(VecDeque::from([window]));
                Inline::Body(Counted::object(body, &self.metrics))
            }
            HotContent::Memory(content) if bytes > 0 => {
                let at = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
                let content = content.slice(at(selected.bytes.start)..at(selected.bytes.end));
                Inline::Bytes(self.memory.guard(origin.peer_state, content)?, ())
            }
            _ => Inline::Bytes(Bytes::new(), ()),
        };
        let id = self.ids.next();
        let expiration = expiration(&store, bucket, &object.info, &object.tags).unwrap_or_default();
        let tags = object.tag_count.to_string();
        let length = (selected.bytes.end - selected.bytes.start).to_string();
        let content_range = selected.content_range.as_deref().unwrap_or_default();
        let optional = [
            ("content-length", length.as_bytes()),
            ("content-range", content_range.as_bytes()),
            ("x-amz-request-id", &id[..]),
            ("x-amz-expiration", expiration.as_bytes()),
            ("x-amz-tagging-count", if tags == "0" { &[] } else { tags.as_bytes() }),
        ];
        let is_whole = selected.content_range.is_none();
        let wants_checksum = is_whole && request.fields.first(CHECKSUM_MODE).is_some();
        let checksum = object.checksum.as_ref().filter(|_| wants_checksum);
        let checksum = checksum.map(|checksum| checksum.fields()).into_iter().flatten();
        let fields = optional.into_iter().filter(|(_, value)| !value.is_empty()).chain(checksum);
        let status = if is_whole { StatusCode::OK } else { StatusCode::PARTIAL_CONTENT };
        head.identify(RequestIdentity { id, user: caller.access_key() });
        head.write_prepared(status.as_u16(), fields, &object.head).ok()?;
        if let Inline::Bytes(content, ()) = &body {
            self.metrics.sent(content.len() as u64);
        }
        self.metrics.answered(kind, status, started.elapsed());
        Some(body)
    }

    /// Reads an object from the page cache, for HEAD only its head, and caches it if it is whole.
    /// Errors are left to the service, which has the messages for them.
    fn read_cached(
        &self,
        store: &Store,
        kind: Kind,
        path: &str,
        place: ObjectLocation,
    ) -> Option<Arc<HotObject>> {
        let (bucket, key) = path.split_once('/')?;
        if kind == Kind::Head {
            let object = store.head_cached(bucket, key).ok()??;
            return HotObject::new(place, &object, Bytes::new()).map(Arc::new);
        }
        let object = store.get_cached(bucket, key).ok()??;
        if !object.is_in_memory() {
            return None;
        }
        let content = object.read(0, usize::try_from(object.info.bytes).ok()?).ok()?;
        let hot = HotObject::new(place, &object, content)?;
        // It may have been overwritten after its place was determined.
        let is_current = store.location(bucket, key) == Some(place);
        Some(if is_current { self.hot.insert(path, hot) } else { Arc::new(hot) })
    }
}

/// Returns the place of an object; `None` also in a bucket with versions, because the response has
/// the version ID.
fn place_of(store: &Store, bucket: &str, key: &str) -> Option<ObjectLocation> {
    store.location(bucket, key).filter(|_| !has_versions(store, bucket))
}

/// Returns the names of the bucket and the object in a path without its first slash; `None` for
/// other paths.
pub(super) fn names(path: &str) -> Option<(&str, &str)> {
    let (bucket, key) = path.split_once('/').filter(|(_, key)| !key.is_empty())?;
    check_bucket_name(bucket).then_some((bucket, key))
}

/// Returns the bytes that a request selects; `None` if the service must decide.
fn selected(request: &Request<'_>, kind: Kind, object_bytes: u64) -> Option<Selected> {
    let mut ranges = request.fields.all("range");
    let Some(range) = ranges.next() else { return select(None, None, &[object_bytes]).ok() };
    if kind == Kind::Head || ranges.next().is_some() {
        return None;
    }
    let range = Range::parse(str::from_utf8(range).ok()?).ok()?;
    select(Some(&range), None, &[object_bytes]).ok()
}

/// Returns `true` if the request wants the object in any state, and is not that of a web page.
fn is_plain(request: &Request<'_>) -> bool {
    let is_plain = |name: &[u8]| {
        let starts_with = |prefix: &str| {
            name.get(..prefix.len()).is_some_and(|s| s.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.first() {
            Some(b'i' | b'I') => !starts_with("if-"),
            // A web page may need the headers of a CORS rule.
            Some(b'o' | b'O') => !is("origin"),
            Some(b'x' | b'X') => !starts_with("x-amz-") || PLAIN_HEADERS.into_iter().any(is),
            _ => true,
        }
    };
    request.fields.into_iter().all(|field| is_plain(field.name))
}
