//! Limits the memory of this process, including its page cache.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::guardian::Guardian;
use haul_measure::{Error, Result};

/// A memory cgroup that contains this process; on drop the process returns to its old cgroup.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    home: PathBuf,
    _guardian: Guardian,
}

/// The cgroups of one hierarchy (cgroup v1 or v2), and the name of the file that sets the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    /// The cgroup of this process.
    home: PathBuf,
    /// The parent of the new cgroup.
    parent: PathBuf,
    limit: &'static str,
}

impl MemoryLimit {
    /// Limits this process to `bytes` of memory, including its page cache. A process is in one
    /// cgroup at a time, so it must have no other limit.
    ///
    /// # Errors
    /// [`Error::Missing`] if no memory cgroup is writable.
    pub(crate) fn new(bytes: u64) -> Result<Self> {
        let missing = |why: String| {
            Error::Missing(format!("{why}; limiting memory needs root and the memory cgroup"))
        };
        let text = fs::read_to_string("/proc/self/cgroup")
            .map_err(|error| missing(format!("cannot read /proc/self/cgroup: {error}")))?;
        let mut found = hierarchies(&text, Path::new("/sys/fs/cgroup")).into_iter();
        let hierarchy = found.find(Hierarchy::is_usable);
        let none = "no memory cgroup is mounted below /sys/fs/cgroup";
        let hierarchy = hierarchy.ok_or_else(|| missing(none.to_owned()))?;
        // The cgroup of an earlier limit may not have been removed yet.
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let group = hierarchy.parent.join(format!("haul-bench-{}-{number}", std::process::id()));
        let guardian = Guardian::of(Path::new("/"), &group)?;
        let failed =
            |error: io::Error| missing(format!("cannot set up {}: {error}", group.display()));
        fs::create_dir(&group).map_err(failed)?;
        fs::write(group.join(hierarchy.limit), bytes.to_string()).map_err(failed)?;
        let limit = Self { home: hierarchy.home, _guardian: guardian };
        enter(&group).map_err(failed)?;
        Ok(limit)
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // An error is ignored, because `drop` cannot return it: the process then stays limited.
        drop(enter(&self.home));
    }
}

impl Hierarchy {
    fn is_usable(&self) -> bool {
        let is_for_memory = self.limit == V1_LIMIT || self.home.join(V2_LIMIT).exists();
        is_for_memory && self.home.join("cgroup.procs").exists()
    }
}

const V1_LIMIT: &str = "memory.limit_in_bytes";
const V2_LIMIT: &str = "memory.max";

fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// Returns the hierarchies in `text`, the content of `/proc/self/cgroup`, that may limit memory. A
/// cgroup v2 that contains processes must not have children with controllers, so the new cgroup is
/// a sibling of the current cgroup.
fn hierarchies(text: &str, mount: &Path) -> Vec<Hierarchy> {
    let below = |mount: PathBuf, path: &str| mount.join(path.trim_start_matches('/'));
    text.lines()
        .filter_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            if controllers.split(',').any(|controller| controller == "memory") {
                let home = below(mount.join("memory"), path);
                return Some(Hierarchy { parent: home.clone(), home, limit: V1_LIMIT });
            }
            let home = below(mount.to_path_buf(), path);
            let parent = home.parent()?.to_path_buf();
            controllers.is_empty().then_some(Hierarchy { home, parent, limit: V2_LIMIT })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_cgroups_are_found() {
        let text = "9:name=systemd:/\n4:cpu,memory:/a/b\n0::/user/me\n";
        let hierarchy = |home: &str, parent: &str, limit| Hierarchy {
            home: home.into(),
            parent: parent.into(),
            limit,
        };
        let expected = [
            hierarchy("/cg/memory/a/b", "/cg/memory/a/b", V1_LIMIT),
            hierarchy("/cg/user/me", "/cg/user", V2_LIMIT),
        ];
        assert_eq!(hierarchies(text, Path::new("/cg")), expected);
        assert_eq!(hierarchies("nonsense", Path::new("/cg")), []);
    }
}
