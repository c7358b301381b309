//! Targets of protocol headers.

pub(crate) mod chunked;
pub(crate) mod fields;
pub(crate) mod proxy_header;
pub(crate) mod request;
pub(crate) mod response;
