//! Writes the groups of a search as a report in one of five formats, and reads two of the formats.

mod formats;
mod group;
mod header;
mod json;
mod options;
mod read;
mod search;
mod size;
mod text;

pub use formats::{Format, Writer};
pub use group::{Group, Identity, Member, Report};
pub use header::{Header, Stats, Timestamp};
pub use options::{OptionValue, SEARCH_OPTIONS};
pub use read::read;
pub use search::{Replication, Search, absolute_path};
