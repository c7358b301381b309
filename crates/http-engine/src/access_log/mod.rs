//! The access log of a server: one line for each response, in one of three formats.

mod destination;
mod fields;
mod json;
mod line;
mod record;
mod redact;
mod thread_log;

pub use destination::{AccessLog, Lines};
pub use fields::{LogFormat, NO_RESPONSE};
pub use json::JsonLine;
pub(crate) use line::LogDates;
pub(crate) use record::Recorder;
pub use record::{Record, RequestIdentity, RequestOutcome};
pub use redact::without_secrets;
pub use thread_log::ThreadLog;
