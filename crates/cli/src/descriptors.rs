//! Raises the limit on open file descriptors of this process, and divides the descriptors of a file
//! server between connections and open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open descriptors to the hard limit and returns the limit in effect, if
/// any. The soft limit is often 1,024, which is too low for a server: each connection, file and
/// pipe takes a descriptor.
pub(crate) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        // The kernel did not raise the limit, so the server has to work within the soft limit.
        Err(_refused) => current,
    }
}

/// The maximum number of descriptors per connection: a socket, and a file opened twice.
const PER_CONNECTION: usize = 3;

/// The division of the descriptors of a file server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescriptorBudget {
    /// The maximum number of connections. Each connection takes a socket. A connection that sends a
    /// file which the cache does not keep open takes one or two more descriptors: the file, and the
    /// file opened a second time for direct I/O.
    pub(crate) connections: usize,
    /// The maximum number of files kept open. Each may be opened a second time for direct I/O.
    pub(crate) open_files: usize,
    /// The number of descriptors for everything else, such as listeners, epoll, pipes and log
    /// files.
    pub(crate) reserve: usize,
}

impl DescriptorBudget {
    /// Returns the budget reduced to `limit` descriptors. Open files take at most a quarter of the
    /// limit. Connections take what open files and the reserve leave, but at least one connection
    /// is allowed.
    pub(crate) fn limited_to(self, limit: u64) -> Self {
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
    fn budget_never_exceeds_the_limit() {
        let wanted = DescriptorBudget { connections: 10_000, open_files: 1024, reserve: 100 };
        for (limit, connections, open_files) in [
            (1 << 20, 10_000, 1024),
            (32_148, 10_000, 1024),
            (32_147, 9_999, 1024),
            (8192, 2014, 1024),
            (1024, 222, 128),
            (100, 1, 12),
        ] {
            let fitted = DescriptorBudget { connections, open_files, ..wanted };
            assert_eq!(wanted.limited_to(limit), fitted, "{limit}");
        }
    }
}
