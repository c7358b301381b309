//! Responds to plain requests for cached objects at once, without the S3 service: GET and HEAD
//! without conditions or options. The response is the one that the service would give; all
//! other requests, and all that fail, are left to it.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use haul_file_store::{Object, ObjectLocation};
use haul_http_engine::{Origin, PreparedHead, RequestIdentity, ResponseHead};
use haul_http1::{Date, HeadWriter, Request, Target};
use hyper::StatusCode;
use s3s::dto::Range;

use crate::body::memory::PeerMemory;
use crate::buckets::lifecycle::operations::expiration;
use crate::front::Front;
use crate::front::anonymous::is_this_machine;
use crate::front::hot::{HotChecksum, HotObject};
use crate::front::signature::is_operation;
use crate::front::text::decode;
use crate::metrics::Kind;
use crate::objects::attributes;
use crate::objects::range::{Selected, select};
use crate::objects::tagging;

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

/// Attributes that are sent under their own names.
const SENT_ATTRIBUTES: [&str; 6] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    "x-amz-website-redirect-location",
];

/// User metadata is kept and sent under names that begin with this.
const METADATA: &str = "x-amz-meta-";

impl Front {
    /// Responds to a plain request for a cached object; returns its content.
    pub(crate) fn respond_inline(
        &self,
        request: &Request<'_>,
        origin: &Origin<'_, PeerMemory>,
        head: &mut ResponseHead<'_>,
    ) -> Option<Bytes> {
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
        let is_allowed = match &self.verifier {
            Some(verifier) => verifier.is_valid(request, &path, query),
            None => (query.is_empty() || is_operation(query)) && is_of_this_machine(request),
        };
        if !is_allowed {
            return None;
        }
        let path = path.strip_prefix('/')?;
        let (bucket, key) = path.split_once('/').filter(|(_, key)| !key.is_empty())?;
        let place = self.store.location(bucket, key)?;
        let object = match self.hot.get(path, place) {
            Some(object) => object,
            None => self.read_cached(kind, path, place)?,
        };
        let selected = selected(request, kind, object.info.bytes)?;
        let body = match kind {
            Kind::Head => Bytes::new(),
            _ => {
                let at = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
                let body = object.body.slice(at(selected.bytes.start)..at(selected.bytes.end));
                self.memory.guard(origin.of_peer, body)?
            }
        };
        let id = self.ids.next();
        let expiration = expiration(&self.store, bucket, &object.info);
        let tags = if kind == Kind::Head { 0 } else { object.tags };
        let (expiration, tags) = (expiration.unwrap_or_default(), tags.to_string());
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
        head.identify(RequestIdentity { id, user: self.access_key.clone() });
        head.write_prepared(status.as_u16(), fields, &object.head).ok()?;
        self.metrics.sent(body.len() as u64);
        self.metrics.answered(kind, status, started.elapsed());
        Some(body)
    }

    /// Reads an object from the page cache, for HEAD only its head, and keeps it if it is whole.
    /// Errors are left to the service, which has the words for them.
    fn read_cached(&self, kind: Kind, path: &str, place: ObjectLocation) -> Option<Arc<HotObject>> {
        let (bucket, key) = path.split_once('/')?;
        let object = match kind {
            Kind::Head => self.store.head_cached(bucket, key),
            _ => self.store.get_cached(bucket, key),
        };
        let object = object.ok()??;
        let body = match kind {
            Kind::Head => Bytes::new(),
            _ if object.is_in_memory() => {
                object.read(0, usize::try_from(object.info.bytes).ok()?).ok()?
            }
            _ => return None,
        };
        let is_plain = |value: &str| value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !sent_attributes(&object).all(|(_, value)| is_plain(value)) {
            // The service encodes these.
            return None;
        }
        let hot = Arc::new(HotObject {
            place,
            head: PreparedHead::new(|head| describe(&object, head)).ok()?,
            body,
            tags: tagging::from_attributes(&object.attributes).len(),
            checksum: HotChecksum::kept(&object.attributes),
            info: object.info,
        });
        // It may have been overwritten after its place was determined.
        if kind != Kind::Head && self.store.location(bucket, key) == Some(place) {
            self.hot.insert(path, Arc::clone(&hot));
        }
        Some(hot)
    }
}

/// Returns `true` if a request without credentials is from this machine, and not from a web page.
fn is_of_this_machine(request: &Request<'_>) -> bool {
    request.fields.first("origin").is_none() && is_this_machine(request.host.unwrap_or_default())
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

/// Returns `true` if the request wants the object in any state.
fn is_plain(request: &Request<'_>) -> bool {
    let is_plain = |name: &[u8]| {
        let starts_with = |prefix: &str| {
            name.get(..prefix.len()).is_some_and(|s| s.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.first() {
            Some(b'i' | b'I') => !starts_with("if-"),
            Some(b'x' | b'X') => !starts_with("x-amz-") || PLAIN_HEADERS.into_iter().any(is),
            _ => true,
        }
    };
    request.fields.into_iter().all(|field| is_plain(field.name))
}

/// Returns the attributes that are sent under their own names.
fn sent_attributes(object: &Object) -> impl Iterator<Item = (&str, &str)> {
    let is_sent = |name: &str| SENT_ATTRIBUTES.contains(&name) || name.starts_with(METADATA);
    object.attributes.iter().filter(move |(name, _)| is_sent(name))
}

/// Writes the fields that describe an object.
fn describe(object: &Object, head: &mut HeadWriter<'_>) {
    let Object { info, attributes, .. } = object;
    head.field("accept-ranges", b"bytes");
    for (name, value) in sent_attributes(object) {
        head.field(name, value.as_bytes());
    }
    head.field("content-type", attributes::content_type(attributes, &info.key).as_bytes());
    head.field_parts("etag", &[b"\"", info.etag.to_string().as_bytes(), b"\""]);
    head.date("last-modified", &Date::of(info.modified));
}
