//! How many files, sockets and pipes this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Each connection is a descriptor, and so are files and pipes: many systems give 1,024 at first
/// and more to whoever asks.
pub(crate) fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it is refused, connections beyond the limit wait.
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).ok();
}
