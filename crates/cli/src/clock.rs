//! Formats times as RFC 3339 defines, such as `2026-11-21T07:23:14.500Z`. The module does no I/O.

use std::time::SystemTime;

use haul_line_log::Utc;

/// Formats `time` in UTC with milliseconds.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    format!("{:.3}", Utc::of(time))
}
