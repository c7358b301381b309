//! What is measured, as numbers and names. Pure.

use std::fmt;

/// How bulk data is written beside the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Not at all: what the others need by themselves.
    Alone,
    /// `write`, as a copying program does.
    Unpaced,
    /// The same with a pacer.
    Paced { window_bytes: u64 },
    /// The same, dropped from the page cache behind the window.
    Dropping { window_bytes: u64 },
    /// Past the page cache.
    Direct,
}

/// How much a direct write hands over: the device has nothing to do between two of them.
pub(super) const DIRECT_BYTES: usize = 4 << 20;

/// How much any other write hands over.
pub(super) const PIECE_BYTES: usize = 1 << 20;

impl Way {
    /// Its name in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Unpaced => "unpaced",
            Self::Paced { .. } => "paced",
            Self::Dropping { .. } => "paced, dropped",
            Self::Direct => "direct",
        }
    }

    pub(super) const fn window_bytes(self) -> Option<u64> {
        match self {
            Self::Paced { window_bytes } | Self::Dropping { window_bytes } => Some(window_bytes),
            Self::Alone | Self::Unpaced | Self::Direct => None,
        }
    }

    /// How much one write hands over: whole windows where those are small.
    pub(super) fn piece_bytes(self) -> usize {
        match self {
            Self::Direct => DIRECT_BYTES,
            _ => {
                let window = self.window_bytes().and_then(|bytes| usize::try_from(bytes).ok());
                window.unwrap_or(PIECE_BYTES).min(PIECE_BYTES)
            }
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.window_bytes().map_or(Ok(()), |bytes| write!(f, " {} KiB", bytes >> 10))
    }
}

/// All ways, as they stand in a table: a pacer with each window, dropping with the first.
pub(super) fn ways(window_bytes: &[u64]) -> Vec<Way> {
    let paced = window_bytes.iter().map(|&window_bytes| Way::Paced { window_bytes });
    let dropping = window_bytes.first().map(|&window_bytes| Way::Dropping { window_bytes });
    [Way::Alone, Way::Unpaced]
        .into_iter()
        .chain(paced)
        .chain(dropping)
        .chain([Way::Direct])
        .collect()
}

/// The two who write little and want to be quick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Foreground {
    /// Appends a record and syncs it.
    Syncing,
    /// Overwrites a page in the page cache, and leaves it to the kernel.
    Overwriting,
}

impl Foreground {
    pub(super) const ALL: [Self; 2] = [Self::Syncing, Self::Overwriting];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Syncing => "append, fdatasync",
            Self::Overwriting => "overwrite",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_has_a_row_and_the_first_has_two() {
        let names: Vec<_> = ways(&[8 << 20, 1 << 20]).iter().map(Way::to_string).collect();
        let expected = [
            "alone",
            "unpaced",
            "paced 8192 KiB",
            "paced 1024 KiB",
            "paced, dropped 8192 KiB",
            "direct",
        ];
        assert_eq!(names, expected);
        assert_eq!(ways(&[]).len(), 3);
    }

    #[test]
    fn a_write_is_never_longer_than_a_window() {
        for (way, bytes) in [
            (Way::Unpaced, 1 << 20),
            (Way::Paced { window_bytes: 256 << 10 }, 256 << 10),
            (Way::Paced { window_bytes: 8 << 20 }, 1 << 20),
            (Way::Direct, 4 << 20),
        ] {
            assert_eq!(way.piece_bytes(), bytes, "{way}");
        }
    }
}
