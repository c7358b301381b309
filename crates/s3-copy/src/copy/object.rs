//! One object at both servers, or one version of it.

use bytes::Bytes;
use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response};
use time::OffsetDateTime;

use super::headers::{SourceEtag, stored};
use crate::client::{Client, Payload, Request, retry};
use crate::error::{Error, Result};
use crate::listing::Listing;
use crate::model::{Version, part_count};

/// A version of an object, or an object of a bucket without versions.
#[derive(Clone, Copy)]
pub(super) struct Object<'a> {
    pub(super) from: &'a Client,
    pub(super) to: &'a Client,
    pub(super) bucket: &'a str,
    pub(super) key: &'a str,
    pub(super) version: &'a Version,
    /// In a bucket with versions, the number of versions that the target has before.
    pub(super) target_versions: Option<usize>,
}

/// The result of copying an object.
pub(super) enum Copied {
    /// The object is stored with this length; `by_length` if its ETag could not be compared.
    Stored { bytes: u64, by_length: bool },
    /// The source does not have the object any more.
    Gone,
}

impl Object<'_> {
    /// `true` if the ETag of the source is one that the target cannot have.
    pub(super) async fn is_opaque(&self) -> Result<bool> {
        let request = Request::new(Method::HEAD, self.bucket, self.key);
        let response = self.from.send(&request, &Bytes::new()).await?;
        let etag = SourceEtag::new(response.headers());
        Ok(etag.is_opaque() || part_count(&etag.text).is_some())
    }

    /// `true` if the source has an object with this key.
    pub(super) async fn is_at_source(&self) -> Result<bool> {
        let request = Request::new(Method::HEAD, self.bucket, self.key);
        match self.from.send(&request, &Bytes::new()).await {
            Ok(_) => Ok(true),
            Err(error) if error.status() == Some(404) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns a request for the content of this version.
    pub(super) fn read(&self) -> Request<'_> {
        let id = self.version.id.as_deref().filter(|id| !id.is_empty());
        Request::get(self.bucket, self.key).with_some("versionId", id)
    }

    /// Deletes the object, which in a bucket with versions creates a delete marker.
    pub(super) async fn delete(&self) -> Result<Copied> {
        let request = Request::new(Method::DELETE, self.bucket, self.key);
        let mut is_repeated = false;
        retry(async || {
            if is_repeated && self.stored_before().await?.is_some() {
                return Ok(());
            }
            is_repeated = true;
            self.to.send_once(&request, Payload::Bytes(Bytes::new())).await.map(drop)
        })
        .await?;
        Ok(Copied::Stored { bytes: 0, by_length: false })
    }

    /// Returns the version that an earlier try stored.
    pub(super) async fn stored_before(&self) -> Result<Option<Version>> {
        let Some(before) = self.target_versions else { return Ok(None) };
        let mut found = Listing::find(self.to, self.bucket, self.key, true).await?;
        let versions = found.as_mut().map(|key| std::mem::take(&mut key.versions));
        Ok(versions.filter(|all| all.len() > before).and_then(|mut all| all.pop()))
    }

    /// Returns the headers with which the copy is stored, tags included.
    pub(super) async fn headers(&self, response: &HeaderMap) -> Result<HeaderMap> {
        let mut headers = stored(response, OffsetDateTime::now_utc());
        let count = response.get("x-amz-tagging-count").and_then(|count| count.to_str().ok());
        if count.is_none_or(|count| count == "0") {
            return Ok(headers);
        }
        let document = self.from.document(&self.read().with("tagging", "")).await?;
        let mut tags = form_urlencoded::Serializer::new(String::new());
        for tag in document.all("TagSet").flat_map(|set| set.all("Tag")) {
            tags.append_pair(tag.text(&["Key"]), tag.text(&["Value"]));
        }
        let value = HeaderValue::from_str(&tags.finish()).map_err(|error| Error::Value {
            what: "the list of tags".to_owned(),
            why: error.to_string(),
        })?;
        headers.insert(HeaderName::from_static("x-amz-tagging"), value);
        Ok(headers)
    }
}

/// Returns the length of the body of a response.
pub(super) fn length(client: &Client, request: &Request<'_>, response: &Response) -> Result<u64> {
    let length = response.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    length.ok_or_else(|| Error::Response {
        request: client.describe(request),
        why: "it has no Content-Length".to_owned(),
    })
}

/// Compares the ETag of the target with that of the source. Returns `true` if they differ because
/// the target cannot compute the same, so that only the length is known to be equal.
pub(super) fn compare(source: &SourceEtag, target: &str) -> Result<bool> {
    match source.text == target {
        true => Ok(false),
        false if source.is_opaque() => Ok(true),
        false => Err(Error::Mismatch {
            source_etag: source.text.clone(),
            target_etag: target.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::ETAG;

    use super::*;

    #[test]
    fn copy_with_another_etag_is_an_error() {
        let source = |text: &'static str, encryption: Option<&'static str>| {
            let mut headers = HeaderMap::from_iter([(ETAG, HeaderValue::from_static(text))]);
            if let Some(kind) = encryption {
                let name = HeaderName::from_static("x-amz-server-side-encryption");
                headers.insert(name, HeaderValue::from_static(kind));
            }
            SourceEtag::new(&headers)
        };
        let [md5, other] =
            ["\"9e107d9d372bb6826bd81d3542a419d6\"", "e4d909c290d0fb1ca068ffaddf22cbd0"];
        let plain = source(md5, None);
        assert!(matches!(compare(&plain, md5.trim_matches('"')), Ok(false)));
        assert!(matches!(compare(&plain, other), Err(Error::Mismatch { .. })));
        // A target cannot compute the ETag of another server's key service.
        assert!(matches!(compare(&source(md5, Some("aws:kms")), other), Ok(true)));
    }
}
