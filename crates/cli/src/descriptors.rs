//! How many files, sockets and pipes this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Each connection is a descriptor, and so are files and pipes: many systems give 1,024 at first
/// and more to whoever asks. Says how many there may be, if that is limited.
pub(crate) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        // Connections beyond the limit wait.
        Err(_refused) => current,
    }
}

/// A socket, and a file that is open twice.
const PER_CONNECTION: usize = 3;

/// What a server of files would like to have open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Each is a socket and, while a file is sent that is not kept open, that file, which may be
    /// open once more for direct reads.
    pub(crate) connections: usize,
    /// Each is open once, and once more for direct reads.
    pub(crate) open_files: usize,
    /// For everything else.
    pub(crate) reserve: usize,
}

impl Wanted {
    /// What of it fits into `limit`: files that are kept open take a quarter of it at most, and
    /// connections what is left.
    pub(crate) fn fitted(self, limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let open_files = self.open_files.min(limit / 8);
        let left = limit.saturating_sub(open_files.saturating_mul(2)).saturating_sub(self.reserve);
        let connections = self.connections.min(left / PER_CONNECTION).max(1);
        Self { open_files, connections, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_files_and_the_rest_never_exceed_the_limit() {
        let wanted = Wanted { connections: 10_000, open_files: 1024, reserve: 100 };
        for (limit, connections, open_files) in [
            (1 << 20, 10_000, 1024),
            (32_148, 10_000, 1024),
            (32_147, 9_999, 1024),
            (8192, 2014, 1024),
            (1024, 222, 128),
            (100, 1, 12),
        ] {
            let fitted = Wanted { connections, open_files, ..wanted };
            assert_eq!(wanted.fitted(limit), fitted, "{limit}");
        }
    }
}
