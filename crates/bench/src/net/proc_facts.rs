//! Parses files of `/proc` about processes, processors and sockets. Performs no I/O.

/// Returns the process group from the text of `/proc/PID/stat`; `None` for a zombie. The process
/// name in the text may contain brackets and spaces.
pub(crate) fn group_of(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    let (state, _parent, group) = (fields.next()?, fields.next()?, fields.next()?);
    (state != "Z").then(|| group.parse().ok())?
}

/// Returns the CPU time of a task in nanoseconds, from the text of its `schedstat`.
pub(crate) fn cpu_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

/// Returns the number of ticks a core was busy, including interrupts, from the text of
/// `/proc/stat`.
pub(crate) fn busy_ticks(stat: &str, core: usize) -> Option<u64> {
    let name = format!("cpu{core}");
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&*name))?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).map_while(|n| n.parse().ok()).collect();
    // The columns are user, nice, system, idle, iowait, irq, softirq, then steal and guest time.
    // Guest time is not added, because user time includes it.
    let [user, nice, system, _idle, _iowait, irq, softirq] = ticks.first_chunk()?;
    Some(user + nice + system + irq + softirq)
}

/// Returns `true` if a socket listens on `port` of 127.0.0.1 or of all addresses, according to the
/// text of `/proc/net/tcp`.
pub(crate) fn listens(tcp: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    tcp.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next().unwrap_or_default(), fields.nth(1));
        let of_port = local.split_once(':').is_some_and(|(host, hex)| {
            matches!(host, "0100007F" | "00000000") && u16::from_str_radix(hex, 16) == Ok(port)
        });
        of_port && state == Some(LISTEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_is_parsed_after_any_process_name() {
        for (stat, expected) in [
            ("12 (nginx) S 1 12 12 0 -1", Some(12)),
            ("13 (a ) R 9 (b)) S 12 11 12 0", Some(11)),
            ("13 (x) Z 1 12 12 0", None),
            ("13 (x) S 12", None),
            ("", None),
        ] {
            assert_eq!(group_of(stat), expected, "{stat}");
        }
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        assert_eq!(group_of(&own).map(u32::cast_signed), Some(group));
    }

    #[test]
    fn busy_time_of_a_core_excludes_idle_and_iowait() {
        let stat = "cpu  9 9 9 9 9 9 9\ncpu0 1 20 300 4 5 6000 70000 8 9 10\ncpu1 1 1 1 1 1 1 1 0\n\
                    cpu10 2 2 2 2 2 2 2\nintr 5\n";
        assert_eq!(busy_ticks(stat, 0), Some(76_321));
        assert_eq!(busy_ticks(stat, 10), Some(10));
        assert_eq!(busy_ticks(stat, 2), None);
        assert_eq!(busy_ticks("cpu0 1 2\n", 0), None);
    }

    #[test]
    fn cpu_time_of_a_task_is_parsed() {
        assert_eq!(cpu_ns("123456789 42 7\n"), Some(123_456_789));
        assert_eq!(cpu_ns(""), None);
    }

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let tcp = "  sl  local_address rem_address   st tx_queue\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n\
            1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000\n\
            2: 0100007F:2000 0100007F:1F90 01 00000000:00000000 00:00000000\n\
            3: 0200007F:2001 00000000:0000 0A 00000000:00000000 00:00000000\n";
        let found: Vec<_> =
            [0x1f90, 22, 0x2000, 0x2001, 1].map(|port| listens(tcp, port)).into_iter().collect();
        assert_eq!(found, [true, true, false, false, false]);
    }
}
