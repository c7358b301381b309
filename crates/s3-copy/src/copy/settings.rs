//! Copies the settings of a bucket, as the documents that they are.

use bytes::Bytes;
use md5::{Digest, Md5};
use reqwest::Method;

use crate::client::{Client, Request};
use crate::error::{Error, Result};
use crate::xml::Element;

/// A setting of a bucket: the parameter that names it in requests, and the root of its document;
/// no root if the document is JSON.
pub(super) struct Setting {
    pub(super) name: &'static str,
    root: Option<&'static str>,
}

const fn setting(name: &'static str, root: &'static str) -> Setting {
    Setting { name, root: Some(root) }
}

/// The settings that affect how objects are stored. They are set before the objects are copied.
pub(super) const EARLY: [Setting; 1] = [setting("encryption", "ServerSideEncryptionConfiguration")];

/// The setting that the bucket must have before objects with locks are copied.
pub(super) const OBJECT_LOCK: Setting = setting("object-lock", "ObjectLockConfiguration");

/// The settings that are set after the objects are copied: a default retention would apply to
/// objects without one, rules could expire objects, and a policy could deny the copy.
pub(super) const LATE: [Setting; 7] = [
    setting("tagging", "Tagging"),
    setting("cors", "CORSConfiguration"),
    setting("lifecycle", "LifecycleConfiguration"),
    OBJECT_LOCK,
    Setting { name: "policy", root: None },
    setting("publicAccessBlock", "PublicAccessBlockConfiguration"),
    setting("website", "WebsiteConfiguration"),
];

/// The settings that are never copied.
pub(super) const NEVER: [Setting; 3] = [
    setting("notification", "NotificationConfiguration"),
    setting("replication", "ReplicationConfiguration"),
    setting("logging", "BucketLoggingStatus"),
];

/// The enabled object lock without a default retention.
pub(super) const LOCK_WITHOUT_DEFAULT: &str = "<ObjectLockConfiguration>\
    <ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>";

/// The document of a setting.
pub(super) struct Document {
    pub(super) bytes: Bytes,
    /// The content without its form, for comparisons.
    canonical: String,
}

impl Document {
    pub(super) fn is_same(&self, other: Option<&Self>) -> bool {
        other.is_some_and(|other| other.canonical == self.canonical)
    }
}

/// Returns the document of a setting, or `None` if the bucket does not have it or the server does
/// not support it.
pub(super) async fn fetch(
    client: &Client,
    bucket: &str,
    setting: &Setting,
) -> Result<Option<Document>> {
    let request = Request::get(bucket, "").with(setting.name, "");
    let bytes = match client.bytes(&request).await {
        Ok(bytes) => bytes,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(root) = setting.root else {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let is_json = text.trim_start().starts_with('{');
        let canonical = text.split_whitespace().collect::<Vec<_>>().join(" ");
        return Ok(is_json.then(|| Document { bytes: bytes.into(), canonical }));
    };
    // Servers that do not know a setting may send a listing of the bucket.
    let document = Element::parse(&bytes).ok();
    let document = document.filter(|it| it.name == root && !it.children.is_empty());
    Ok(document.map(|it| Document { bytes: bytes.into(), canonical: it.canonical() }))
}

/// `true` if a setting does not exist, or is not known to the server.
fn is_absent(error: &Error) -> bool {
    matches!(error.status(), Some(404 | 405 | 501))
        || matches!(error.code(), "NotImplemented" | "MethodNotAllowed" | "InvalidRequest")
}

/// Sets a setting at the target.
pub(super) async fn store(
    client: &Client,
    bucket: &str,
    name: &str,
    document: &Bytes,
) -> Result<()> {
    let md5 = base64_simd::STANDARD.encode_type::<String>(&Md5::digest(document));
    let request = Request::put(bucket, "").with(name, "").header("content-md5", &md5);
    client.send(&request, document).await.map(drop)
}

/// Returns the status of versioning: `Enabled`, `Suspended` or an empty text.
pub(super) async fn versioning(client: &Client, bucket: &str) -> Result<String> {
    let request = Request::get(bucket, "").with("versioning", "");
    match client.document(&request).await {
        // Some servers have another root, and some send a listing for requests that they do not know.
        Ok(document) if document.name.contains("Versioning") => {
            Ok(document.text(&["Status"]).to_owned())
        }
        Ok(_listing) => Ok(String::new()),
        Err(error) if is_absent(&error) && error.code() != "NoSuchBucket" => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// Enables or suspends versioning.
pub(super) async fn set_versioning(client: &Client, bucket: &str, status: &str) -> Result<()> {
    let xml = format!(
        "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <Status>{status}</Status></VersioningConfiguration>"
    );
    store(client, bucket, "versioning", &Bytes::from(xml)).await
}

/// `true` if the server has the bucket.
pub(crate) async fn exists(client: &Client, bucket: &str) -> Result<bool> {
    let request = Request::new(Method::HEAD, bucket, "");
    match client.send(&request, &Bytes::new()).await {
        Ok(_) => Ok(true),
        Err(error) if error.status() == Some(404) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates a bucket.
pub(super) async fn create(client: &Client, bucket: &str, has_lock: bool) -> Result<()> {
    let mut request = Request::put(bucket, "");
    if has_lock {
        request = request.header("x-amz-bucket-object-lock-enabled", "true");
    }
    client.send(&request, &Bytes::new()).await.map(drop)
}
