//! Reads what the kernel counts about a thread.

use std::fs::read_to_string;

/// The counts of one thread since its start; unknown counts are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ThreadCounts {
    /// Page faults that needed no read: the kernel mapped a page of memory.
    pub(super) minor_faults: Option<u64>,
    /// The number of times that the thread slept, such as for a lock.
    pub(super) sleeps: Option<u64>,
    pub(super) cpu_ns: Option<u64>,
}

impl ThreadCounts {
    /// Returns the counts of the calling thread.
    pub(super) fn now() -> Self {
        let read = |name| read_to_string(format!("/proc/thread-self/{name}")).unwrap_or_default();
        let cpu_ns = read("schedstat").split_whitespace().next().and_then(|ns| ns.parse().ok());
        Self { minor_faults: minor_faults(&read("stat")), sleeps: sleeps(&read("status")), cpu_ns }
    }

    /// Returns the increase since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        let difference = |after: Option<u64>, before: Option<u64>| after?.checked_sub(before?);
        Self {
            minor_faults: difference(self.minor_faults, before.minor_faults),
            sleeps: difference(self.sleeps, before.sleeps),
            cpu_ns: difference(self.cpu_ns, before.cpu_ns),
        }
    }

    /// Returns the sums of the counts of two threads.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        Self {
            minor_faults: sum(self.minor_faults, other.minor_faults),
            sleeps: sum(self.sleeps, other.sleeps),
            cpu_ns: sum(self.cpu_ns, other.cpu_ns),
        }
    }
}

/// Returns the minor faults from the text of `stat`; the name of the thread may contain brackets
/// and spaces.
fn minor_faults(stat: &str) -> Option<u64> {
    // After the name: state, parent, group, session, terminal, its group, flags, minor faults.
    stat.rsplit_once(')')?.1.split_whitespace().nth(7)?.parse().ok()
}

/// Returns the voluntary context switches from the text of `status`.
fn sleeps(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_parsed_from_the_files_of_the_kernel() {
        let stat = "7 (a ) b) R 1 7 7 0 -1 4194560 123 0 4 0";
        assert_eq!((minor_faults(stat), minor_faults("7 (a) R")), (Some(123), None));
        let status = "nonvoluntary_ctxt_switches:\t1\nvoluntary_ctxt_switches:\t45\n";
        assert_eq!((sleeps(status), sleeps("")), (Some(45), None));
        let before = ThreadCounts::now();
        assert!(before.minor_faults.is_some() && before.sleeps.is_some());
        let none = ThreadCounts { minor_faults: Some(0), sleeps: Some(0), cpu_ns: Some(0) };
        assert_eq!((before.since(&before).sleeps, none.plus(&none)), (Some(0), none));
    }
}
