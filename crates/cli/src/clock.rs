//! Times as RFC 3339 tells them: `2026-11-21T07:23:14.500Z`. Pure.

use std::time::SystemTime;

use haul_line_log::Utc;

/// `time` in UTC to the millisecond, as everything that is stored has it.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    format!("{:.3}", Utc::of(time))
}
