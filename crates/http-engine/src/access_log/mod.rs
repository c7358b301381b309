//! The access log of a server: one line for each response, in one of three formats.

mod destination;
mod fields;
mod json;
mod line;
mod record;

pub use destination::{AccessLog, Lines};
pub use fields::{LogFormat, LoggedRequest, LoggedResponse, NO_RESPONSE};
pub use json::JsonLine;
pub use line::{LogDates, PendingLine};
pub use record::RequestIdentity;
pub(crate) use record::{Record, Recorder};
