//! Measures the CPU time of a server's processes and of whole cores, from files of `/proc`.

use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::time::Duration;

use rustix::param::clock_ticks_per_second;

use super::cores::Cores;

/// The process group and the cores whose CPU time is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    /// The id of the process group, which is also the id of its first process.
    pub(crate) group: u32,
    pub(crate) cores: Cores,
}

/// The values of all CPU times at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    /// The CPU time in nanoseconds of each task (thread), by task id; `None` if unknown.
    tasks: Option<BTreeMap<u32, u64>>,
    /// The CPU time of the processes in ticks, with that of their ended threads and children.
    process_ticks: Option<u64>,
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
        let processes = processes(self.group);
        Usage {
            tasks: task_times(&processes),
            process_ticks: processes.iter().map(|process| process_ticks(&stat_of(*process)?)).sum(),
            server_ticks: busy_ticks(&stat, self.cores.server),
            load_ticks: busy_ticks(&stat, self.cores.load),
        }
    }
}

impl Usage {
    /// Returns the CPU times used from `self` to `later`. If a task of the server has ended in the
    /// meantime, its time is known only in ticks of usually 10 ms.
    pub(crate) fn until(&self, later: &Self) -> Used {
        let ticks = |before: Option<u64>, after: Option<u64>| {
            let ticks = after?.checked_sub(before?)?;
            Some(Duration::from_secs(ticks) / u32::try_from(clock_ticks_per_second()).ok()?)
        };
        let tasks = self.tasks.as_ref().zip(later.tasks.as_ref());
        let process = tasks.and_then(|(before, after)| time_between(before, after));
        Used {
            process: process.or_else(|| ticks(self.process_ticks, later.process_ticks)),
            core: ticks(self.server_ticks, later.server_ticks),
            load_core: ticks(self.load_ticks, later.load_ticks),
        }
    }
}

fn time_between(before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> Option<Duration> {
    if after.is_empty() || before.keys().any(|task| !after.contains_key(task)) {
        return None;
    }
    let times = after
        .iter()
        .map(|(task, ns)| ns.checked_sub(before.get(task).copied().unwrap_or_default()));
    times.sum::<Option<u64>>().map(Duration::from_nanos)
}

/// Returns the ids of the processes of a group, without zombies.
pub(crate) fn processes(group: u32) -> Vec<u32> {
    let number = |entry: std::io::Result<std::fs::DirEntry>| -> Option<u32> {
        entry.ok()?.file_name().to_str()?.parse().ok()
    };
    let in_group =
        |process: &u32| stat_of(*process).is_some_and(|stat| group_in(&stat) == Some(group));
    read_dir("/proc").into_iter().flatten().filter_map(number).filter(in_group).collect()
}

fn stat_of(process: u32) -> Option<String> {
    read_to_string(format!("/proc/{process}/stat")).ok()
}

fn task_times(processes: &[u32]) -> Option<BTreeMap<u32, u64>> {
    let mut tasks = BTreeMap::new();
    for process in processes {
        for task in read_dir(format!("/proc/{process}/task")).ok()? {
            let task: u32 = task.ok()?.file_name().to_str()?.parse().ok()?;
            let times = read_to_string(format!("/proc/{process}/task/{task}/schedstat")).ok()?;
            tasks.insert(task, times.split_whitespace().next()?.parse().ok()?);
        }
    }
    Some(tasks)
}

/// Returns the fields after the process name in the text of `/proc/PID/stat`. The name may contain
/// brackets and spaces.
fn fields(stat: &str) -> Option<Vec<&str>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace().collect())
}

/// Returns the process group; `None` for a zombie.
fn group_in(stat: &str) -> Option<u32> {
    let fields = fields(stat)?;
    (*fields.first()? != "Z").then(|| fields.get(2)?.parse().ok())?
}

/// Returns the ticks of a process and of its children that have ended.
fn process_ticks(stat: &str) -> Option<u64> {
    // utime, stime, cutime and cstime are the fields 14 to 17 of the file.
    fields(stat)?.get(11..15)?.iter().map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Returns the number of ticks a core was busy, including interrupts, from the text of
/// `/proc/stat`.
fn busy_ticks(stat: &str, core: usize) -> Option<u64> {
    let name = format!("cpu{core}");
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&*name))?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).map_while(|n| n.parse().ok()).collect();
    // Steal and guest time follow; guest time is not added, because user time includes it.
    let [user, nice, system, _idle, _iowait, irq, softirq] = ticks.first_chunk()?;
    Some(user + nice + system + irq + softirq)
}

/// Returns `true` if a socket listens on `port` of 127.0.0.1 or of all addresses, according to the
/// text of `/proc/net/tcp` or `/proc/net/tcp6`.
pub(crate) fn listens(tcp: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    tcp.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next().unwrap_or_default(), fields.nth(1));
        let is_port = local.split_once(':').is_some_and(|(host, hex)| {
            let is_any = host.bytes().all(|byte| byte == b'0');
            (host == "0100007F" || is_any) && u16::from_str_radix(hex, 16) == Ok(port)
        });
        is_port && state == Some(LISTEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_ended_tasks_is_known_in_ticks() {
        let usage = |tasks: &[(u32, u64)], ticks| Usage {
            tasks: Some(tasks.iter().copied().collect()),
            process_ticks: Some(ticks),
            server_ticks: Some(ticks),
            load_ticks: None,
        };
        let ns = |number| Some(Duration::from_nanos(number));
        let before = usage(&[(1, 1000), (2, 50)], 0);
        let second = clock_ticks_per_second();
        for (after, expected) in [
            (&[(1, 1500), (2, 60), (3, 9)][..], ns(519)),
            (&[(1, 1500)], ns(1_000_000_000)),
            (&[], ns(1_000_000_000)),
        ] {
            let used = before.until(&usage(after, second));
            assert_eq!((used.process, used.core), (expected, ns(1_000_000_000)), "{after:?}");
        }
        assert_eq!(Usage::default().until(&before), Used::default());
    }

    #[test]
    fn files_of_proc_are_parsed() {
        let stat = "13 (a ) R 9 (b)) S 12 11 12 0 -1 4 5 6 7 8 100 20 3 4 20 0";
        assert_eq!((group_in(stat), process_ticks(stat)), (Some(11), Some(127)));
        assert_eq!((group_in("13 (x) Z 1 12 12 0"), process_ticks("")), (None, None));
        let own = stat_of(std::process::id()).unwrap();
        let group = rustix::process::getpgrp().as_raw_nonzero().get().cast_unsigned();
        assert_eq!(group_in(&own), Some(group));
        assert!(processes(group).contains(&std::process::id()) && process_ticks(&own).is_some());
        let stat = "cpu  9 9 9 9 9 9 9\ncpu0 1 20 300 4 5 6000 70000 8 9 10\ncpu1 1 2\n";
        assert_eq!((busy_ticks(stat, 0), busy_ticks(stat, 1)), (Some(76_321), None));
        let tcp = "  sl  local_address rem_address   st tx_queue\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n\
            1: 00000000000000000000000000000000:0016 0:0000 0A 00000000:00000000 00:00000000\n\
            2: 0100007F:2000 0100007F:1F90 01 00000000:00000000 00:00000000\n\
            3: 0200007F:2001 00000000:0000 0A 00000000:00000000 00:00000000\n";
        let ports = [0x1f90, 22, 0x2000, 0x2001].map(|port| listens(tcp, port));
        assert_eq!(ports, [true, true, false, false]);
    }
}
