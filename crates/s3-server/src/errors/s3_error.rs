//! An S3 error.

use std::error::Error;
use std::fmt;

use http::header::HeaderMap;

use crate::errors::S3ErrorCode;

pub(crate) type S3Result<T> = Result<T, S3Error>;

/// An S3 error: a code, a message for people, and more elements and headers for the response.
pub(crate) struct S3Error(Box<Parts>);

struct Parts {
    code: S3ErrorCode,
    message: String,
    /// More elements in the error document, such as `ArgumentName`.
    fields: Vec<(&'static str, String)>,
    headers: HeaderMap,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl S3Error {
    pub(crate) fn new(code: S3ErrorCode, message: String) -> Self {
        let (fields, headers) = (Vec::new(), HeaderMap::new());
        Self(Box::new(Parts { code, message, fields, headers, source: None }))
    }

    /// Adds an element to the error document.
    pub(crate) fn with_field(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.fields.push((name, value.into()));
        self
    }

    /// Adds response headers.
    pub(crate) fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.0.headers.extend(headers);
        self
    }

    pub(crate) fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Box::new(source));
        self
    }

    pub(crate) fn code(&self) -> S3ErrorCode {
        self.0.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns an element of the error document.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// Returns the additional response headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }

    /// Returns the error document's elements in addition to code and message.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.fields.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

impl fmt::Debug for S3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { code, message, fields, .. } = &*self.0;
        f.debug_tuple("S3Error").field(&code.as_str()).field(message).field(fields).finish()
    }
}

impl fmt::Display for S3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code().as_str(), self.message())
    }
}

impl Error for S3Error {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
