//! Reads the load average of the machine for a report.

use std::fs::read_to_string;

/// Returns the load average of the last minute; `None` if the kernel does not report the load. On a
/// busy machine, threads that wait for a processor make the device look slow.
#[must_use]
pub fn load_average() -> Option<f64> {
    let text = read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Returns a note on the load average, for a report; `None` if the kernel does not report the load.
#[must_use]
pub fn load() -> Option<String> {
    let load = load_average()?;
    Some(format!(
        "load average before the measurement: {load:.2}; times are reliable only on an idle machine"
    ))
}
