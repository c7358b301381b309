//! Copies one object, or one version of it.

use bytes::Bytes;
use reqwest::Body;

use super::headers::SourceEtag;
use super::object::{Copied, Object, compare, length};
use super::parts;
use crate::client::{Payload, Request, retry};
use crate::error::Result;
use crate::model::part_count;
use crate::plan::PART_BYTES_MAX;

/// The maximum length of an object that is held in memory.
const MEMORY_BYTES_MAX: u64 = 4 << 20;

/// Copies the object, or creates its delete marker.
pub(super) async fn copy(object: &Object<'_>) -> Result<Copied> {
    let is_in_parts = part_count(&object.version.etag).is_some();
    let copied = if object.version.is_delete_marker {
        object.delete().await
    } else if is_in_parts || object.version.bytes > PART_BYTES_MAX {
        parts::copy(object).await
    } else {
        copy_whole(object).await
    };
    match copied {
        // Another client deleted it after it was listed.
        Err(error) if error.status() == Some(404) && error.code() == "NoSuchKey" => {
            Ok(Copied::Gone)
        }
        other => other,
    }
}

async fn copy_whole(object: &Object<'_>) -> Result<Copied> {
    let mut is_repeated = false;
    retry(async || {
        // The response to a request that stored a version may have been lost: repeated, it would
        // store the version twice.
        let stored = if is_repeated { object.stored_before().await? } else { None };
        is_repeated = true;
        match stored {
            Some(version) => {
                let by_length = version.etag != object.version.etag;
                Ok(Copied::Stored { bytes: version.bytes, by_length })
            }
            None => copy_once(object).await,
        }
    })
    .await
}

async fn copy_once(object: &Object<'_>) -> Result<Copied> {
    let Object { from, to, .. } = *object;
    let read = object.read();
    let response = from.send_once(&read, Payload::Bytes(Bytes::new())).await?;
    let etag = SourceEtag::new(response.headers());
    let bytes = length(from, &read, &response)?;
    let mut write = Request::put(object.bucket, object.key);
    write.headers = object.headers(response.headers()).await?;
    if let Some(md5) = etag.content_md5() {
        write.headers.insert("content-md5", md5);
    }
    let payload = if bytes <= MEMORY_BYTES_MAX {
        let limit = usize::try_from(bytes).unwrap_or(usize::MAX);
        Payload::Bytes(from.body(&read, response, limit).await?.into())
    } else {
        Payload::Stream(Body::wrap_stream(response.bytes_stream()), bytes)
    };
    let stored = to.send_once(&write, payload).await?;
    let by_length = compare(&etag, &SourceEtag::new(stored.headers()).text)?;
    Ok(Copied::Stored { bytes, by_length })
}
