//! Less memory for this process than the machine has, page cache included, for a while.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::guardian::Guardian;

/// Removes the group once this process has left it, or ended.
const REMOVE: &str = r#"
cat > /dev/null
tries=0
while [ -d "$1" ] && ! rmdir -- "$1" 2> /dev/null && [ $tries -lt 50 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
"#;

/// This process in a memory cgroup of its own. When this is dropped, it is back where it was.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    home: PathBuf,
    _guardian: Guardian,
}

/// Where groups of a hierarchy are, and the file that limits one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    /// The group this process is in.
    home: PathBuf,
    /// In which a group can be made for it.
    parent: PathBuf,
    limit: &'static str,
}

impl MemoryLimit {
    /// Lets this process have `bytes`: what it reads through the page cache counts.
    ///
    /// # Errors
    /// [`Error::Missing`] where memory cannot be limited: no memory cgroup, or none for us.
    pub(crate) fn new(bytes: u64) -> Result<Self> {
        let missing = |why: String| {
            Error::Missing(format!("{why}; limiting memory needs root and the memory cgroup"))
        };
        let text = fs::read_to_string("/proc/self/cgroup")
            .map_err(|error| missing(format!("cannot read /proc/self/cgroup: {error}")))?;
        let found = hierarchies(&text, Path::new("/sys/fs/cgroup"));
        let hierarchy = found
            .into_iter()
            .find(|one| one.home.join("cgroup.procs").exists() && one.is_for_memory())
            .ok_or_else(|| {
                missing("no memory cgroup is mounted below /sys/fs/cgroup".to_owned())
            })?;
        let group = hierarchy.parent.join(format!("haul-bench-{}", std::process::id()));
        let guardian = Guardian::with(REMOVE, &[group.as_os_str()])?;
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
        // Where that fails, the process stays in a group that is as good as any but smaller.
        drop(enter(&self.home));
    }
}

impl Hierarchy {
    fn is_for_memory(&self) -> bool {
        self.limit == V1_LIMIT || self.home.join(V2_LIMIT).exists()
    }
}

const V1_LIMIT: &str = "memory.limit_in_bytes";
const V2_LIMIT: &str = "memory.max";

fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// Where memory may be limited, by the lines of `/proc/self/cgroup`. A group of the second version
/// that has processes has no groups below it, so ours stands beside it.
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
        let found = hierarchies(text, Path::new("/cg"));
        assert_eq!(
            found,
            [
                Hierarchy {
                    home: "/cg/memory/a/b".into(),
                    parent: "/cg/memory/a/b".into(),
                    limit: V1_LIMIT
                },
                Hierarchy {
                    home: "/cg/user/me".into(),
                    parent: "/cg/user".into(),
                    limit: V2_LIMIT
                },
            ]
        );
        assert_eq!(hierarchies("nonsense", Path::new("/cg")), []);
    }
}
