//! The output of an operation with headers for which the types of `s3s` have no fields.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// An output and additional headers of its response.
pub(crate) struct Output<T> {
    pub(crate) output: T,
    pub(crate) headers: HeaderMap,
}

impl<T> From<T> for Output<T> {
    fn from(output: T) -> Self {
        Self { output, headers: HeaderMap::new() }
    }
}

impl<T> Output<T> {
    /// Adds a header, unless its name or its value is invalid.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            self.headers.insert(name, value);
        }
    }
}
