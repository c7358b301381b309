//! Reads the load average of the machine for a report.

use std::fs::read_to_string;

/// Returns a note on the load average, for a report; `None` if the kernel does not report the load.
/// On a busy machine, threads that wait for a processor make the device look slow.
#[must_use]
pub fn load() -> Option<String> {
    let text = read_to_string("/proc/loadavg").ok()?;
    let load = text.split_whitespace().next()?;
    Some(format!(
        "load average before the measurement: {load}; times are reliable only on an idle machine"
    ))
}
