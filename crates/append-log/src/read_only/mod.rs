//! Provides read-only access to a log that another process may be writing.

mod copy;
mod deliver;
mod list;
mod reader;
mod report;
mod snapshot;

pub use reader::ReadOnlyReader;
pub use report::ReadOnlyReport;
pub use snapshot::ReadOnlyLog;
