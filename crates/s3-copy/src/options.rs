//! Defines what is copied, from where and to where.

use std::fmt;

/// The keys with which requests are signed.
#[derive(Clone)]
pub struct Credentials {
    /// The name of the key.
    pub access_key: String,
    /// The secret.
    pub secret_key: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// An S3 server.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The URL without a bucket, such as `http://127.0.0.1:9000`.
    pub url: String,
    /// The region in signatures.
    pub region: String,
    /// The keys; without them, requests are not signed.
    pub credentials: Option<Credentials>,
}

impl Endpoint {
    /// Returns a server at `url` in the region `us-east-1`, without keys.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), region: "us-east-1".to_owned(), credentials: None }
    }
}

/// The options of a copy.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server that is read.
    pub from: Endpoint,
    /// The server that is written.
    pub to: Endpoint,
    /// The buckets to copy; all that the source lists if it is empty.
    pub buckets: Vec<String>,
    /// The number of keys that are copied at a time, at least 1.
    pub jobs: usize,
    /// Delete objects of the target that the source does not have.
    pub delete: bool,
    /// Only compare, and report what would be done.
    pub dry_run: bool,
}

impl Options {
    /// Returns the options of a copy of all buckets, with 32 keys at a time.
    #[must_use]
    pub fn new(from: Endpoint, to: Endpoint) -> Self {
        Self { from, to, buckets: Vec::new(), jobs: 32, delete: false, dry_run: false }
    }
}
