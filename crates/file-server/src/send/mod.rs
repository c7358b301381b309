//! Sends files: reads them on disk threads where necessary, and produces the pieces of responses.

pub(crate) mod body;
pub(crate) mod file_range;
pub(crate) mod read;
pub(crate) mod request_count;
pub(crate) mod version_check;
