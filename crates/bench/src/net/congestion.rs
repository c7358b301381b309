//! Sets the TCP congestion control algorithm, a setting of the whole machine, so that all servers
//! use the same algorithm.

use std::path::Path;

use crate::setting::{Setting, read};
use haul_measure::{Error, Result};

const CURRENT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Makes new connections use the algorithm `wanted` until the setting is dropped; `None` leaves it
/// unchanged. Also returns the note for the report that names the algorithm.
pub(super) fn set(wanted: Option<&str>) -> Result<(Option<Setting>, String)> {
    let before = read(Path::new(CURRENT)).unwrap_or_else(|_| "unknown".to_owned());
    let Some(wanted) = wanted else {
        let note = format!(
            "TCP congestion control is {before}, the setting of this machine; bbr paces by \
             timers, so use --congestion cubic if it is bbr"
        );
        return Ok((None, note));
    };
    let available = read(Path::new(AVAILABLE))?;
    if !available.split_whitespace().any(|name| name == wanted) {
        return Err(Error::Missing(format!(
            "congestion control {wanted:?} is not available; available are: {available}"
        )));
    }
    let changed = Setting::change(Path::new(CURRENT), wanted)?;
    let note =
        format!("TCP congestion control was {wanted} during the measurement; before: {before}");
    Ok((changed, note))
}
