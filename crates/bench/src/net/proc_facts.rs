//! What `/proc` says of processes, processors and sockets, understood. Pure.

/// The group of a process, by its `/proc/PID/stat`; of one that has ended and waits for its parent,
/// none. The name in it may hold anything, brackets and spaces too.
pub(crate) fn group_of(stat: &str) -> Option<u32> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace();
    let (state, _parent, group) = (fields.next()?, fields.next()?, fields.next()?);
    (state != "Z").then(|| group.parse().ok())?
}

/// How long a task ran, in nanoseconds, by its `schedstat`.
pub(crate) fn ran_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

/// How many ticks a core did something, interrupts included, by `/proc/stat`.
pub(crate) fn busy_ticks(stat: &str, core: usize) -> Option<u64> {
    let name = format!("cpu{core}");
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&*name))?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).map_while(|n| n.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq; what follows is not ours, or counted already.
    let [user, nice, system, _idle, _iowait, irq, softirq] = ticks.first_chunk()?;
    Some(user + nice + system + irq + softirq)
}

/// Whether somebody listens on that port of 127.0.0.1 or of all addresses, by `/proc/net/tcp`.
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
    fn the_group_stands_behind_whatever_name() {
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
    fn the_time_of_a_core_is_all_that_is_not_idle() {
        let stat = "cpu  9 9 9 9 9 9 9\ncpu0 1 20 300 4 5 6000 70000 8 9 10\ncpu1 1 1 1 1 1 1 1 0\n\
                    cpu10 2 2 2 2 2 2 2\nintr 5\n";
        assert_eq!(busy_ticks(stat, 0), Some(76_321));
        assert_eq!(busy_ticks(stat, 10), Some(10));
        assert_eq!(busy_ticks(stat, 2), None);
        assert_eq!(busy_ticks("cpu0 1 2\n", 0), None);
    }

    #[test]
    fn a_task_tells_how_long_it_ran() {
        assert_eq!(ran_ns("123456789 42 7\n"), Some(123_456_789));
        assert_eq!(ran_ns(""), None);
    }

    #[test]
    fn only_who_listens_where_we_ask_counts() {
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
