//! Reads the metrics of this process from `/proc`, with the names that Prometheus clients use.

use std::fs::{read_dir, read_to_string};

use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, getrlimit};

use crate::exposition::{Exposition, MetricType};

/// The version of all crates of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROFILE: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

impl Exposition {
    /// Writes `haul_build_info` and the metrics of this process: CPU time, memory, descriptors and
    /// the time of the start. A metric that `/proc` does not contain is omitted.
    pub fn process(&mut self) {
        let labels = [("version", VERSION), ("profile", PROFILE)];
        let help = "1; the labels describe the program.";
        self.family("haul_build_info", MetricType::Gauge, help).sample(&labels, 1_u64);
        let ticks_per_s = clock_ticks_per_second() as f64;
        let times = read_to_string("/proc/self/stat").ok().and_then(|text| times(&text));
        if let Some((cpu_ticks, start_ticks)) = times {
            let help = "CPU time in user and kernel mode.";
            let cpu_s = cpu_ticks as f64 / ticks_per_s;
            self.counter("process_cpu_seconds_total", help, cpu_s);
            let boot_s = read_to_string("/proc/stat").ok().and_then(|text| field(&text, "btime"));
            if let Some(boot_s) = boot_s {
                let help = "Time of the start, in seconds since 1970.";
                let start_s = boot_s as f64 + start_ticks as f64 / ticks_per_s;
                self.gauge("process_start_time_seconds", help, start_s);
            }
        }
        let status = read_to_string("/proc/self/status").ok();
        if let Some(resident_kib) = status.and_then(|text| field(&text, "VmRSS:")) {
            let help = "Resident memory.";
            self.gauge("process_resident_memory_bytes", help, resident_kib * 1024);
        }
        if let Ok(descriptors) = read_dir("/proc/self/fd") {
            // The directory itself is open while it is read.
            let open = descriptors.count().saturating_sub(1) as u64;
            self.gauge("process_open_fds", "Open descriptors.", open);
        }
        if let Some(max) = getrlimit(Resource::Nofile).current {
            self.gauge("process_max_fds", "Limit of open descriptors.", max);
        }
    }
}

/// Parses `/proc/PID/stat`: the CPU time, and the time from boot to start, in clock ticks.
fn times(stat: &str) -> Option<(u64, u64)> {
    // The name of the process, in parentheses, may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<_> = fields.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some((number(11)? + number(12)?, number(19)?))
}

/// Returns the number after `name` at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_processes_do_not_shift_the_fields() {
        let stat = "7 (a) S (b) R 1 7 7 0 -1 4194560 100 0 0 0 12 30 0 0 20 0 2 0 5000 100 9";
        assert_eq!(times(stat), Some((42, 5000)));
        assert_eq!(times("7 (a) R 1"), None);
        assert_eq!(field("VmPeak:\t 9 kB\nVmRSS:\t 8 kB\n", "VmRSS:"), Some(8));
        assert_eq!(field("", "VmRSS:"), None);
    }

    #[test]
    fn this_process_has_all_metrics() {
        let mut page = Exposition::default();
        page.process();
        let text = page.into_text();
        let value = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(name));
            line.unwrap_or_else(|| panic!("{name} is not in\n{text}"))
                .rsplit_once(' ')
                .and_then(|(_, value)| value.parse().ok())
                .unwrap()
        };
        assert_eq!(value(&format!("haul_build_info{{version=\"{VERSION}\"")), 1.0);
        assert!(value("process_cpu_seconds_total") < 3600.0);
        assert!(value("process_resident_memory_bytes") > 100_000.0);
        assert!((3.0..10_000.0).contains(&value("process_open_fds")));
        assert!(value("process_max_fds") >= value("process_open_fds"));
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        assert!((0.0..3600.0).contains(&(now - value("process_start_time_seconds"))));
    }
}
