//! Copies an object by an upload in parts, those of the source if it was stored in parts, so that
//! the ETags are equal.

use std::ops::Range;

use bytes::Bytes;
use md5::{Digest, Md5};
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Body, Method};

use super::headers::SourceEtag;
use super::object::{Copied, Object, compare, length};
use crate::client::{Client, Payload, Request, hex, md5_from_hex, retry};
use crate::error::{Error, Result};
use crate::model::part_count;
use crate::plan::{PART_BYTES_MAX, equal_parts, part_bytes, piece_bytes};

/// The parts of an object.
struct Parts {
    ranges: Vec<Range<u64>>,
    /// `true` if they are those of the source.
    are_exact: bool,
}

pub(super) async fn copy(object: &Object<'_>) -> Result<Copied> {
    let found = describe(object).await?;
    match copy_parts(object, &found, Lengths::Equal).await {
        // The first and the last part have the lengths of equal parts, but others do not.
        Err(Error::Mismatch { .. }) if part_count(&object.version.etag) > Some(2) => {
            copy_parts(object, &found, Lengths::Each).await
        }
        other => other,
    }
}

/// How the lengths of the parts are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lengths {
    /// From the first and the last part, if both fit equal parts.
    Equal,
    /// From each part.
    Each,
}

async fn copy_parts(object: &Object<'_>, found: &HeaderMap, lengths: Lengths) -> Result<Copied> {
    let mut etag = SourceEtag::new(found);
    let parts = parts(object, &etag.text, lengths).await?;
    etag.is_comparable &= parts.are_exact;
    let mut create = Request::new(Method::POST, object.bucket, object.key).with("uploads", "");
    create.headers = object.headers(found).await?;
    let response = object.to.send(&create, &Bytes::new()).await?;
    let body = object.to.body(&create, response, 1 << 20).await?;
    let document = object.to.parsed(&create, &body)?;
    let id = document.text(&["UploadId"]);
    let stored = upload(object, &etag, &parts, id).await;
    if stored.is_err() {
        // A failed deletion leaves parts that take space, which a lifecycle rule can remove.
        let abort = Request::new(Method::DELETE, object.bucket, object.key).with("uploadId", id);
        drop(object.to.send(&abort, &Bytes::new()).await);
    }
    let by_length = stored?;
    Ok(Copied::Stored { bytes: object.version.bytes, by_length })
}

/// Returns the headers of the object. Not all servers send the number of tags for a HEAD.
async fn describe(object: &Object<'_>) -> Result<HeaderMap> {
    let request = object.read();
    let request = match object.version.bytes {
        0 => request,
        _ => request.header("range", "bytes=0-0"),
    };
    Ok(object.from.send(&request, &Bytes::new()).await?.headers().clone())
}

async fn parts(object: &Object<'_>, etag: &str, lengths: Lengths) -> Result<Parts> {
    let bytes = object.version.bytes;
    let pieces = || Parts { ranges: equal_parts(bytes, piece_bytes(bytes)), are_exact: false };
    let Some(count) = part_count(etag) else { return Ok(pieces()) };
    let first = part_length(object, 1).await?;
    let usual = part_bytes(bytes, count, first);
    let ranges = equal_parts(bytes, usual);
    if count == 1 {
        return Ok(Parts { ranges, are_exact: true });
    }
    let last = ranges.last().map(|last| last.end - last.start);
    if lengths == Lengths::Equal
        && first == Some(usual)
        && part_length(object, count).await? == last
    {
        return Ok(Parts { ranges, are_exact: true });
    }
    // A server that does not know the parts sends the length of the object.
    if first.is_some_and(|first| first < bytes)
        && let Some(ranges) = each_part(object, count).await?
    {
        return Ok(Parts { ranges, are_exact: true });
    }
    if ranges.iter().any(|part| part.end - part.start > PART_BYTES_MAX) {
        return Ok(pieces());
    }
    Ok(Parts { ranges, are_exact: false })
}

/// Asks for the length of each part. Returns `None` if they do not add up to the object.
async fn each_part(object: &Object<'_>, count: u32) -> Result<Option<Vec<Range<u64>>>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for number in 1..=count {
        let Some(length) = part_length(object, number).await? else { return Ok(None) };
        ranges.push(start..start + length);
        start += length;
    }
    Ok(Some(ranges).filter(|_| start == object.version.bytes))
}

/// Returns the length of a part of the source, or `None` if the server does not support this.
async fn part_length(object: &Object<'_>, number: u32) -> Result<Option<u64>> {
    let number = number.to_string();
    let mut request = object.read().with("partNumber", &number);
    request.method = Method::HEAD;
    match object.from.send(&request, &Bytes::new()).await {
        Ok(response) => Ok(length(object.from, &request, &response).ok()),
        Err(error) if error.is_transient() || error.status() == Some(404) => Err(error),
        Err(_unsupported) => Ok(None),
    }
}

/// Uploads the parts and completes the upload. Returns `true` if the ETags cannot be compared.
async fn upload(object: &Object<'_>, etag: &SourceEtag, parts: &Parts, id: &str) -> Result<bool> {
    let mut list = String::new();
    let mut hasher = Md5::new();
    let mut are_md5 = true;
    for (number, range) in (1..).zip(&parts.ranges) {
        let stored = retry(async || upload_part(object, etag, range, id, number).await).await?;
        match md5_from_hex(&stored) {
            Some(md5) => hasher.update(md5),
            None => are_md5 = false,
        }
        list += &format!("<Part><PartNumber>{number}</PartNumber><ETag>\"{stored}\"</ETag></Part>");
    }
    let expected = format!("{}-{}", hex(&hasher.finalize()), parts.ranges.len());
    if are_md5 {
        // Before the object appears under its key.
        compare(etag, &expected)?;
    }
    let body = format!("<CompleteMultipartUpload>{list}</CompleteMultipartUpload>");
    let request = Request::new(Method::POST, object.bucket, object.key).with("uploadId", id);
    let body = Bytes::from(body);
    let stored = retry(async || complete(object.to, &request, &body).await).await?;
    compare(etag, &stored)
}

async fn upload_part(
    object: &Object<'_>,
    etag: &SourceEtag,
    range: &Range<u64>,
    id: &str,
    number: u64,
) -> Result<String> {
    let bytes = range.end - range.start;
    let mut read = object.read();
    if bytes > 0 {
        read = read.header("range", &format!("bytes={}-{}", range.start, range.end - 1));
    }
    if let Ok(value) = HeaderValue::from_str(&format!("\"{}\"", etag.text)) {
        // An object that was replaced meanwhile must not become a mixture.
        read.headers.insert("if-match", value);
    }
    let response = object.from.send_once(&read, Payload::Bytes(Bytes::new())).await?;
    if length(object.from, &read, &response)? != bytes {
        let why = format!("its length is not that of the range, {bytes} bytes");
        return Err(Error::Response { request: object.from.describe(&read), why });
    }
    let number = number.to_string();
    let write = Request::put(object.bucket, object.key).with("partNumber", &number);
    let write = write.with("uploadId", id);
    let payload = match bytes {
        0 => Payload::Bytes(Bytes::new()),
        _ => Payload::Stream(Body::wrap_stream(response.bytes_stream()), bytes),
    };
    let stored = object.to.send_once(&write, payload).await?;
    Ok(SourceEtag::new(stored.headers()).text)
}

/// Completes an upload, and returns the ETag. The document of an error may follow the status 200.
async fn complete(client: &Client, request: &Request<'_>, body: &Bytes) -> Result<String> {
    let response = client.send_once(request, Payload::Bytes(body.clone())).await?;
    let bytes = client.body(request, response, 1 << 20).await?;
    let document = client.parsed(request, &bytes)?;
    if document.name == "Error" {
        let text = |name: &str| document.text(&[name]).to_owned();
        let (code, message) = (text("Code"), text("Message"));
        let request = client.describe(request);
        return Err(Error::Rejected { request, status: 200, code, message });
    }
    Ok(document.text(&["ETag"]).trim_matches('"').to_owned())
}
