//! Parts of a request: the path, the fields that select a response, and the host.

pub(crate) mod fields;
pub(crate) mod file_request;
pub(crate) mod path;
