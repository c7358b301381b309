//! GetObject and HeadObject.

use std::sync::Arc;

use haul_file_store::{Attributes, Object, ObjectInfo, ObjectLocation, VersionId};
use haul_http1::Verdict;
use haul_store_pool::Pool;
use http::StatusCode;
use http::header::{HeaderMap, HeaderValue};

use crate::answer::checksum::with_checksum;
use crate::answer::encryption::described;
use crate::answer::{Answer, Content as AnswerContent, quoted, rfc2047};
use crate::body::checksum::{Checksum, kind_of};
use crate::body::part_checksums::PartChecksums;
use crate::body::{Body, send};
use crate::encryption::customer::CustomerKey;
use crate::encryption::request::key_of_read;
use crate::errors::{S3Error, S3ErrorCode, S3Result, check_key, invalid_argument, refuse};
use crate::hot::HotObjects;
use crate::objects::conditions::Conditions;
use crate::objects::lock;
use crate::objects::range::{Selected, Selection, check_part};
use crate::request::head::Head;
use crate::request::name::ObjectName;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::lifecycle::operations::expiration;
use crate::stored::attributes::{METADATA_PREFIX, SENT, content_type};
use crate::stored::versions;
use crate::times::header_time;

/// The query parameters that replace response headers.
const REPLACED: [(&str, &str); 6] = [
    ("response-cache-control", "cache-control"),
    ("response-content-disposition", "content-disposition"),
    ("response-content-encoding", "content-encoding"),
    ("response-content-language", "content-language"),
    ("response-content-type", "content-type"),
    ("response-expires", "expires"),
];

/// The header with which a client requests an object's checksum.
pub(crate) const CHECKSUM_MODE: &str = "x-amz-checksum-mode";

/// The maximum length, in bytes, of a range for which only its blocks are read.
const SHORT_RANGE_BYTES: u64 = 256 << 10;

/// The parameters of a read of an object.
pub(crate) struct Read {
    pub(crate) version: Option<VersionId>,
    pub(crate) conditions: Conditions,
    pub(crate) selection: Selection,
    pub(crate) with_checksum: bool,
    pub(crate) customer: Option<CustomerKey>,
    /// The response headers that the request replaces.
    pub(crate) replaced: Vec<(&'static str, String)>,
}

impl Read {
    /// Reads a request's head.
    ///
    /// # Errors
    /// If a header or a parameter is invalid.
    pub(crate) fn from_request(head: &Head) -> S3Result<Self> {
        check_key(&head.name.key)?;
        let mut replaced = Vec::new();
        for (parameter, header) in REPLACED {
            let Some(value) = head.query.get(parameter) else { continue };
            if HeaderValue::from_bytes(value.as_bytes()).is_err() {
                let message = "The value of a response-… parameter can be no header";
                return Err(invalid_argument(parameter, value, message));
            }
            replaced.push((header, value.to_owned()));
        }
        Ok(Self {
            version: versions::parse(head.query.get("versionId"))?,
            conditions: Conditions::from_fields(&head.fields),
            selection: Selection::from_request(head)?,
            with_checksum: head.fields.has(CHECKSUM_MODE),
            customer: key_of_read(&head.fields)?,
            replaced,
        })
    }

    /// Returns the bytes to send from an object whose parts have the lengths `part_bytes`.
    ///
    /// # Errors
    /// Fails with the response for a failed condition, and like [`Selection::select`].
    pub(crate) fn select(
        &self,
        info: &ObjectInfo,
        attributes: &Attributes,
        part_bytes: &[u64],
    ) -> S3Result<Selected> {
        match self.conditions.verdict(info) {
            Verdict::Proceed { with_ranges: false } => Selection::All.select(part_bytes),
            Verdict::Proceed { with_ranges: true } => self.selection.select(part_bytes),
            Verdict::Failed => {
                let message = "At least one of the pre-conditions you specified did not hold";
                Err(refuse(S3ErrorCode::PreconditionFailed, message)
                    .with_field("Condition", self.conditions.failed_name()))
            }
            Verdict::NotModified => Err(not_modified(info, attributes)),
        }
    }

    /// Returns `true` for a range that is short regardless of the object's length.
    fn is_short(&self) -> bool {
        let Selection::Range(_) = &self.selection else { return false };
        let selected = self.selection.select(&[u64::MAX / 2]).ok();
        selected.is_some_and(|Selected { bytes, .. }| bytes.end - bytes.start <= SHORT_RANGE_BYTES)
    }

    /// Fails if an object in parts lacks the requested part; as in S3, even if the request lacks
    /// the object's key. The ETag has the number of parts.
    fn check_part(&self, info: &ObjectInfo) -> S3Result<()> {
        match (self.selection.part(), usize::from(info.etag.part_count())) {
            (None, _) | (Some(_), 0) => Ok(()),
            (Some(number), parts) => check_part(number, parts).map(drop),
        }
    }

    /// Returns the response without content.
    fn answer(&self, object: &Object, selected: &Selected) -> Answer {
        let Object { info, attributes, .. } = object;
        let status = match selected.content_range {
            Some(_) => StatusCode::PARTIAL_CONTENT,
            None => StatusCode::OK,
        };
        let mut answer = Answer::empty(status)
            .with("accept-ranges", "bytes")
            .with_some("content-range", selected.content_range.as_ref())
            .with("content-type", content_type(attributes, &info.key))
            .with("etag", quoted(&info.etag))
            .with("last-modified", header_time(info.modified));
        for (name, value) in attributes.iter() {
            if SENT.contains(&name) {
                answer.add(name, value);
            } else if name.starts_with(METADATA_PREFIX) {
                answer.add(name, rfc2047::encode(value));
            }
        }
        answer = lock::add_headers(answer, attributes);
        if self.selection.part().is_some() && info.etag.part_count() > 0 {
            answer.add("x-amz-mp-parts-count", info.etag.part_count().to_string());
        }
        let tags = attributes.tags().len();
        if tags > 0 {
            answer.add("x-amz-tagging-count", tags.to_string());
        }
        if self.with_checksum {
            let checksum = self.checksum(object, selected);
            answer = with_checksum(answer, checksum.as_ref(), kind_of(attributes));
        }
        for (name, value) in &self.replaced {
            answer.add(name, value);
        }
        answer
    }

    /// Returns the checksum of the bytes in the response: the whole object, or one part.
    fn checksum(&self, object: &Object, selected: &Selected) -> Option<Checksum> {
        let attributes = &object.attributes;
        match self.selection.part().filter(|_| object.info.etag.part_count() > 0) {
            Some(number) => {
                PartChecksums::from_attributes(attributes)?.get(usize::from(number).checked_sub(1)?)
            }
            None if selected.content_range.is_none() => Checksum::from_attributes(attributes),
            None => None,
        }
    }
}

pub(crate) async fn get_object(haul: &Haul, request: &Request, _body: Body) -> S3Result<Answer> {
    let read = Read::from_request(&request.head)?;
    let ObjectName { bucket, key } = request.name();
    let memory = request.memory.as_ref();
    let open_bytes_max = match (read.version, request.missed) {
        (None, Some(place)) => haul.store().open_bytes_max_at(place),
        (None, None) => haul.store().open_bytes_max(bucket, key),
        (Some(_), _) => haul.store().version_bytes_max(),
    };
    let mut reserved = haul.reserve(memory, open_bytes_max).await?;
    let (object, expiration) = find(haul, request, &read).await?;
    let store = haul.store.get();
    request.caller().confirm_read(&store, "GetObject", (bucket, key), &object.attributes)?;
    read.check_part(&object.info)?;
    let content = haul.content((bucket, key), object, read.customer.as_ref())?;
    let object = &content.object;
    let selected = read.select(&object.info, &object.attributes, &content.part_bytes())?;
    let version = versions::response_id(&store, bucket, object.info.version_id);
    let answer = read
        .answer(object, &selected)
        .with_some("x-amz-expiration", expiration)
        .with_some("x-amz-version-id", version);
    let answer = described(answer, content.master());
    let range = selected.bytes;
    if range.start == 0 && content.opened.is_none() {
        send::pin_if_hot(object);
    }
    let body = match send::pinned(&content, &range) {
        Some(body) => body,
        None => {
            if !content.is_in_memory() {
                drop(reserved);
                let small_bytes_max = haul.limits().small_body_bytes_max;
                let bytes = send::memory_bytes(&content, small_bytes_max);
                reserved = haul.reserve(memory, bytes).await?;
            }
            send::read(Arc::new(content), range, reserved).await?
        }
    };
    Ok(Answer { content: AnswerContent::Object(body), ..answer })
}

/// Returns the object, and the value of `x-amz-expiration`: rules apply to current objects only.
async fn find(haul: &Haul, request: &Request, read: &Read) -> S3Result<(Object, Option<String>)> {
    let (name, missed) = (request.name(), request.missed);
    let ObjectName { bucket, key } = name;
    if read.version.is_none() && missed.is_none() {
        let store = haul.store();
        let cached = versions::cached(&store, bucket, store.get_cached(bucket, key))?;
        if let Some(object) = cached {
            return Ok(with_expiration(&store, bucket, object));
        }
    }
    // The content may not be needed, or only a piece of it.
    let reads_little = read.conditions.any() || read.is_short();
    let (version, name, hot) = (read.version, name.clone(), Arc::clone(&haul.hot));
    haul.blocking(move |store| {
        let ObjectName { bucket, key } = &name;
        if version.is_some() {
            return Ok((versions::get(store, bucket, key, version)?, None));
        }
        let object = match reads_little {
            true => store.open_object(bucket, key),
            false => get_and_cache(store, &hot, &name, missed),
        };
        let object = object.map_err(|error| versions::refused(store, bucket, key, error))?;
        Ok(with_expiration(store, bucket, object))
    })
    .await
}

/// Reads an object, and caches it if it is long.
fn get_and_cache(
    store: &Pool,
    hot: &HotObjects,
    ObjectName { bucket, key }: &ObjectName,
    missed: Option<ObjectLocation>,
) -> haul_file_store::Result<Object> {
    // If the object was overwritten since, its cache entry is never found.
    let place = missed.or_else(|| store.location(bucket, key));
    let path = format!("{bucket}/{key}");
    if let Some(locked) = place.and_then(|place| hot.lock_long(store, &path, place)) {
        return Ok(locked);
    }
    let object = store.get(bucket, key)?;
    if let Some(place) = place {
        hot.insert_long(store, bucket, place, &object);
    }
    Ok(object)
}

/// Returns the object with the value of `x-amz-expiration`.
fn with_expiration(store: &Pool, bucket: &str, object: Object) -> (Object, Option<String>) {
    let expiration = expiration(store, bucket, &object.info, &object.attributes);
    (object, expiration)
}

pub(crate) async fn head_object(haul: &Haul, request: &Request, _body: Body) -> S3Result<Answer> {
    let read = Read::from_request(&request.head)?;
    let ObjectName { bucket, key } = request.name();
    let cached = match read.version {
        None => {
            let store = haul.store();
            versions::cached(&store, bucket, store.head_cached(bucket, key))?
        }
        Some(_) => None,
    };
    let (object, expiration) = match cached {
        Some(object) => with_expiration(&haul.store(), bucket, object),
        None => {
            let (version, name) = (read.version, request.name().clone());
            haul.blocking(move |store| {
                let object = versions::head(store, &name.bucket, &name.key, version)?;
                let (object, expiration) = with_expiration(store, &name.bucket, object);
                Ok((object, expiration.filter(|_| version.is_none())))
            })
            .await?
        }
    };
    let store = haul.store.get();
    request.caller().confirm_read(&store, "HeadObject", (bucket, key), &object.attributes)?;
    read.check_part(&object.info)?;
    let content = haul.content((bucket, key), object, read.customer.as_ref())?;
    let object = &content.object;
    let selected = read.select(&object.info, &object.attributes, &content.part_bytes())?;
    let version = versions::response_id(&store, bucket, object.info.version_id);
    let answer = read
        .answer(object, &selected)
        .with_some("x-amz-expiration", expiration)
        .with_some("x-amz-version-id", version);
    let bytes = selected.bytes.end - selected.bytes.start;
    let answer = described(answer, content.master());
    Ok(Answer { content: AnswerContent::Head(bytes), ..answer })
}

/// Returns the response to a client whose copy is current, with the headers for renewing the
/// client's cache (RFC 9110, 15.4.5).
fn not_modified(info: &ObjectInfo, attributes: &Attributes) -> S3Error {
    let mut headers = HeaderMap::new();
    for name in ["cache-control", "expires"] {
        let value = attributes.get(name).and_then(|value| HeaderValue::try_from(value).ok());
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    if let Ok(value) = HeaderValue::try_from(header_time(info.modified)) {
        headers.insert("last-modified", value);
    }
    if let Ok(value) = HeaderValue::try_from(quoted(&info.etag)) {
        headers.insert("etag", value);
    }
    refuse(S3ErrorCode::NotModified, "Not Modified").with_headers(headers)
}
