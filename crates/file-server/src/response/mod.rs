//! Responses: heads for files and pages, and the handler that creates them.

pub(crate) mod file_response;
pub(crate) mod handler;
