//! Whether a client takes what it asked for. Pure.
//!
//! What the kernel took from us is not all: it takes megabytes at once, and then nothing until a third
//! of them has gone out, which takes a slow client minutes. What the client has confirmed counts, too.

/// The pace of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Handed to the kernel since it was looked at last.
    handed_bytes: u64,
    /// What the kernel held then; `None` before the first look.
    held_bytes: Option<u64>,
}

impl Pace {
    /// The kernel took so many bytes more.
    pub(crate) fn handed(&mut self, bytes: u64) {
        self.handed_bytes += bytes;
    }

    /// A period is over, and the kernel holds so many bytes: whether the client has taken
    /// `wanted_bytes` in it. `None` is a kernel that does not tell. The first period is only where
    /// counting begins: some of an earlier answer may still have been on its way.
    pub(crate) fn is_enough(&mut self, held_bytes: Option<u64>, wanted_bytes: u64) -> bool {
        let handed_bytes = self.handed_bytes;
        let confirmed_bytes = match (self.held_bytes, held_bytes) {
            (Some(before), Some(now)) => (before + handed_bytes).saturating_sub(now),
            (None, Some(_)) => wanted_bytes,
            (_, None) => 0,
        };
        *self = Self { handed_bytes: 0, held_bytes };
        // What was handed had to find room. Of a unix socket more is held than was handed: memory is
        // counted there.
        handed_bytes.max(confirmed_bytes) >= wanted_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_confirmed_and_what_found_room_counts() {
        // For each period: handed to the kernel, held by it at the end; whether 30 are enough.
        for periods in [
            &[(1000, Some(900), true), (0, Some(870), true), (0, Some(841), false)][..],
            &[(1000, Some(1000), true), (0, Some(1000), false)],
            &[(1000, Some(1000), true), (20, Some(990), true), (20, Some(981), false)],
            &[(1000, Some(2000), true), (40, Some(2100), true)],
            // More than was handed: it is of an earlier answer.
            &[(0, Some(5000), true), (0, Some(4000), true), (0, Some(4000), false)],
            &[(30, None, true), (29, None, false)],
        ] {
            let mut pace = Pace::default();
            for (handed, held, expected) in periods {
                pace.handed(*handed);
                assert_eq!(pace.is_enough(*held, 30), *expected, "{periods:?}");
            }
        }
    }
}
