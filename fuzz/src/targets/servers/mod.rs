//! Targets of servers, which get the input over a connection.

pub(crate) mod file_server;
pub(crate) mod relay_request;
pub(crate) mod s3_chunked;
pub(crate) mod s3_document;
pub(crate) mod s3_form;
pub(crate) mod s3_request;
pub(crate) mod s3_signature;
pub(crate) mod s3_signed_request;
