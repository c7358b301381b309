//! How TCP limits itself: a setting of the machine, the same for all that are measured.

use std::path::Path;

use crate::error::{Error, Result};
use crate::setting::{Setting, read};

const CURRENT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// What new connections use, changed for a while where somebody asked for it.
#[derive(Debug)]
pub(crate) struct Congestion {
    _changed: Option<Setting>,
    /// For the report.
    pub(crate) note: String,
}

impl Congestion {
    /// Has new connections use `wanted`, if anything is.
    pub(crate) fn set(wanted: Option<&str>) -> Result<Self> {
        let before = read(Path::new(CURRENT)).unwrap_or_else(|_| "unknown".to_owned());
        let Some(wanted) = wanted else {
            let note = format!(
                "TCP's congestion control is {before}, as the machine has it, for all; bbr paces \
                 what it sends by timers, so --congestion cubic is a better choice where bbr is set"
            );
            return Ok(Self { _changed: None, note });
        };
        let available = read(Path::new(AVAILABLE))?;
        if !available.split_whitespace().any(|name| name == wanted) {
            return Err(Error::Missing(format!(
                "there is no congestion control {wanted:?} here; there are: {available}"
            )));
        }
        let changed = Setting::change(Path::new(CURRENT), wanted)?;
        let note = format!(
            "TCP's congestion control was {wanted} for all while it was measured; before: {before}"
        );
        Ok(Self { _changed: changed, note })
    }
}
