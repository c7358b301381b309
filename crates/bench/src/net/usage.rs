//! Measures the CPU time of a server's tasks (threads) and of whole cores.

use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::time::Duration;

use rustix::param::clock_ticks_per_second;

use super::cores::Cores;
use super::proc_facts::{busy_ticks, cpu_ns, group_of};

/// The process group and the cores whose CPU time is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    /// The id of the process group, which is also the id of its first process.
    pub(crate) group: u32,
    pub(crate) cores: Cores,
    /// `true` if processes of the group start and end during the measurement. The CPU time of ended
    /// processes is lost, so the CPU time of the group is then unknown.
    pub(crate) forks: bool,
}

/// The values of all CPU times at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    /// The CPU time in nanoseconds of each task, by task id; `None` if unknown.
    tasks: Option<BTreeMap<u32, u64>>,
    server_ticks: Option<u64>,
    load_ticks: Option<u64>,
}

/// The CPU times used between two moments; each is `None` if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// The CPU time of the server's processes.
    pub(crate) process: Option<Duration>,
    /// The busy time of the server's core, including the kernel.
    pub(crate) core: Option<Duration>,
    /// The busy time of the load's core.
    pub(crate) load_core: Option<Duration>,
}

impl Meter {
    pub(crate) fn usage(&self) -> Usage {
        let stat = read_to_string("/proc/stat").unwrap_or_default();
        let tasks = if self.forks { None } else { tasks_of(&processes(self.group)) };
        Usage {
            tasks,
            server_ticks: busy_ticks(&stat, self.cores.server),
            load_ticks: busy_ticks(&stat, self.cores.load),
        }
    }
}

impl Usage {
    /// Returns the CPU time used from `self` to `later`. The CPU time of the server's processes is
    /// unknown if one of its tasks has ended in the meantime.
    pub(crate) fn until(&self, later: &Self) -> Used {
        let ticks = |before: Option<u64>, after: Option<u64>| {
            let ticks = after?.checked_sub(before?)?;
            Some(Duration::from_secs(ticks) / u32::try_from(clock_ticks_per_second()).ok()?)
        };
        Used {
            process: self.tasks.as_ref().zip(later.tasks.as_ref()).and_then(|(a, b)| ran(a, b)),
            core: ticks(self.server_ticks, later.server_ticks),
            load_core: ticks(self.load_ticks, later.load_ticks),
        }
    }
}

fn ran(before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> Option<Duration> {
    if after.is_empty() || before.keys().any(|task| !after.contains_key(task)) {
        return None;
    }
    let of = |(task, ns): (&u32, &u64)| ns.checked_sub(before.get(task).copied().unwrap_or(0));
    after.iter().map(of).sum::<Option<u64>>().map(Duration::from_nanos)
}

/// Returns the ids of the processes of a group, without zombies.
pub(crate) fn processes(group: u32) -> Vec<u32> {
    let number = |entry: std::io::Result<std::fs::DirEntry>| -> Option<u32> {
        entry.ok()?.file_name().to_str()?.parse().ok()
    };
    let in_group = |process: &u32| {
        let stat = read_to_string(format!("/proc/{process}/stat"));
        stat.is_ok_and(|stat| group_of(&stat) == Some(group))
    };
    read_dir("/proc").into_iter().flatten().filter_map(number).filter(in_group).collect()
}

fn tasks_of(processes: &[u32]) -> Option<BTreeMap<u32, u64>> {
    let mut tasks = BTreeMap::new();
    for process in processes {
        for task in read_dir(format!("/proc/{process}/task")).ok()? {
            let task: u32 = task.ok()?.file_name().to_str()?.parse().ok()?;
            let ran = read_to_string(format!("/proc/{process}/task/{task}/schedstat"));
            tasks.insert(task, cpu_ns(&ran.ok()?)?);
        }
    }
    Some(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_unknown_after_a_task_has_ended() {
        let usage = |tasks: &[(u32, u64)], ticks| Usage {
            tasks: Some(tasks.iter().copied().collect()),
            server_ticks: Some(ticks),
            load_ticks: None,
        };
        let ns = |number| Some(Duration::from_nanos(number));
        let before = usage(&[(1, 1000), (2, 50)], 7);
        for (after, expected) in [
            (&[(1, 1500), (2, 50)][..], ns(500)),
            (&[(1, 1500), (2, 60), (3, 9)], ns(519)),
            (&[(1, 1500)], None),
            (&[], None),
        ] {
            assert_eq!(before.until(&usage(after, 9)).process, expected, "{after:?}");
        }
        let second = clock_ticks_per_second();
        let used = before.until(&usage(&[(1, 1000), (2, 50)], 7 + second));
        assert_eq!((used.core, used.load_core), (Some(Duration::from_secs(1)), None));
        assert_eq!(Usage::default().until(&before), Used::default());
    }

    #[test]
    fn this_process_is_found_in_its_group() {
        let group = rustix::process::getpgrp().as_raw_nonzero().get().cast_unsigned();
        let found = processes(group);
        assert!(found.contains(&std::process::id()));
        // The CPU time is unknown if a thread of another test ends during the read, so this
        // retries.
        let read = (0..1000).find_map(|_| tasks_of(&[std::process::id()]));
        assert!(read.unwrap().values().any(|ns| *ns > 0));
    }
}
