//! Reads the memory limit and the memory use of this process's control group, and computes how much
//! of its memory may be dirty.
//!
//! Source: `Documentation/admin-guide/cgroup-v2.rst` (Writeback) and `mm/page-writeback.c`.

use super::files::KernelFiles;
use super::memory::named;
use crate::probe::mounts;

/// The maximum number of nested groups whose limits are read.
const DEPTH_MAX: usize = 64;

/// A control group's memory limit and memory use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMemory {
    /// The group's path, as in `/proc/self/cgroup`.
    pub group: String,
    /// `true` for cgroup v1, in which the kernel does not limit dirty memory per group: writers at
    /// the memory limit wait in memory reclaim.
    pub is_version_1: bool,
    /// The lowest memory limit among the group and its ancestors; `None` if unlimited.
    pub limit_bytes: Option<u64>,
    /// The memory that the group may allocate until it or an ancestor reaches a limit; `None` if
    /// unlimited.
    pub room_bytes: Option<u64>,
    /// The page cache charged to the group that can be reclaimed.
    pub file_bytes: Option<u64>,
    /// The dirty part of the group's page cache.
    pub dirty_bytes: Option<u64>,
}

impl GroupMemory {
    /// Returns the group's dirtyable memory in bytes: the amount to which the kernel applies
    /// `vm.dirty_ratio`. The machine has `machine_bytes` of dirtyable memory, and `dirty_bytes` of
    /// this memory are dirty. `None` if the kernel does not limit the group separately.
    #[must_use]
    pub fn dirtyable_bytes(&self, machine_bytes: u64, dirty_bytes: u64) -> Option<u64> {
        if self.is_version_1 {
            return None;
        }
        self.limit_bytes?;
        let (room, file) = (self.room_bytes?, self.file_bytes.unwrap_or(0));
        let clean = file.saturating_sub(self.dirty_bytes.unwrap_or(0));
        let clean_elsewhere = machine_bytes.saturating_sub(dirty_bytes).saturating_sub(clean);
        Some(file.saturating_add(room.min(clean_elsewhere)))
    }
}

/// Returns this process's group; `None` if the machine has no memory control groups.
pub(super) fn current(files: &KernelFiles) -> Option<GroupMemory> {
    let groups = files.text("/proc/self/cgroup")?;
    let mountinfo = files.text("/proc/self/mountinfo")?;
    // The memory controller belongs either to the v2 hierarchy or to a v1 hierarchy.
    let version_2 = path_in(&groups, |controllers| controllers.is_empty())
        .and_then(|group| version_2(files, &mount_point(&mountinfo, "cgroup2", None)?, &group));
    version_2.or_else(|| {
        let is_memory = |controllers: &str| controllers.split(',').any(|name| name == "memory");
        let group = path_in(&groups, is_memory)?;
        version_1(files, &mount_point(&mountinfo, "cgroup", Some("memory"))?, &group)
    })
}

/// Returns the path in the first line of `/proc/self/cgroup` whose controllers satisfy `matches`.
fn path_in(groups: &str, matches: impl Fn(&str) -> bool) -> Option<String> {
    groups.lines().find_map(|line| {
        let (_number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        matches(controllers).then(|| path.to_owned())
    })
}

fn mount_point(mountinfo: &str, kind: &str, option: Option<&str>) -> Option<String> {
    let is_match = |mount: &mounts::Line| {
        let mount = &mount.mount;
        mount.file_system == kind && option.is_none_or(|option| mount.has_option(option))
    };
    mounts::all(mountinfo).find(is_match).map(|line| line.mount.point)
}

/// Returns the directories for the group and its ancestors, from the group up to the mount point.
fn ancestors(point: &str, group: &str) -> impl Iterator<Item = String> {
    let mut rest = Some(group.trim_end_matches('/').to_owned());
    std::iter::from_fn(move || {
        let group = rest.take()?;
        rest = group.rfind('/').map(|at| group[..at].to_owned());
        Some(format!("{}{group}", point.trim_end_matches('/')))
    })
    .take(DEPTH_MAX)
}

fn version_2(files: &KernelFiles, point: &str, group: &str) -> Option<GroupMemory> {
    let own = ancestors(point, group).next()?;
    let stat = files.text(&format!("{own}/memory.stat"));
    let (mut limit_bytes, mut room_bytes, mut is_managed) = (None::<u64>, None::<u64>, false);
    for dir in ancestors(point, group) {
        // The root group has no `memory.current`.
        let Some(used) = files.number(&format!("{dir}/memory.current")) else { continue };
        is_managed = true;
        let limit = |name: &str| limit_in(files, &format!("{dir}/{name}"), "max");
        let Some(limit) = [limit("memory.high"), limit("memory.max")].into_iter().flatten().min()
        else {
            continue;
        };
        limit_bytes = Some(limit_bytes.map_or(limit, |least| least.min(limit)));
        let room = limit.saturating_sub(used);
        room_bytes = Some(room_bytes.map_or(room, |least| least.min(room)));
    }
    let field = |name: &str| named(stat.as_deref()?, name);
    (is_managed || stat.is_some()).then(|| GroupMemory {
        group: group.to_owned(),
        is_version_1: false,
        limit_bytes,
        room_bytes,
        file_bytes: field("active_file")
            .and_then(|active| active.checked_add(field("inactive_file")?)),
        dirty_bytes: field("file_dirty"),
    })
}

fn version_1(files: &KernelFiles, point: &str, group: &str) -> Option<GroupMemory> {
    // cgroup v1 represents "no limit" by a huge number.
    const HUGE: u64 = 1 << 60;
    let number = |dir: &str, name: &str| files.number(&format!("{dir}/{name}"));
    let own = ancestors(point, group).next()?;
    let stat = files.text(&format!("{own}/memory.stat"));
    let (mut limit_bytes, mut room_bytes, mut is_managed) = (None::<u64>, None::<u64>, false);
    for dir in ancestors(point, group) {
        let Some(limit) = number(&dir, "memory.limit_in_bytes") else { continue };
        is_managed = true;
        if limit >= HUGE {
            continue;
        }
        limit_bytes = Some(limit_bytes.map_or(limit, |least| least.min(limit)));
        if let Some(used) = number(&dir, "memory.usage_in_bytes") {
            let room = limit.saturating_sub(used);
            room_bytes = Some(room_bytes.map_or(room, |least| least.min(room)));
        }
    }
    let field = |name: &str| named(stat.as_deref()?, name);
    is_managed.then(|| GroupMemory {
        group: group.to_owned(),
        is_version_1: true,
        limit_bytes,
        room_bytes,
        file_bytes: field("total_active_file")
            .and_then(|active| active.checked_add(field("total_inactive_file")?)),
        dirty_bytes: field("total_dirty"),
    })
}

/// Reads a limit from a file that contains a number, or the word `no_limit` if unlimited.
fn limit_in(files: &KernelFiles, path: &str, no_limit: &str) -> Option<u64> {
    let text = files.text(path)?;
    if text.trim() == no_limit {
        return None;
    }
    let number = text.trim().parse().ok();
    if number.is_none() {
        files.report_malformed(path, &text);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_of_a_group_end_at_the_mount() {
        let of = |group| ancestors("/sys/fs/cgroup", group).collect::<Vec<_>>();
        assert_eq!(
            of("/a/b"),
            ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"].map(str::to_owned)
        );
        assert_eq!(of("/"), ["/sys/fs/cgroup"]);
        assert_eq!(ancestors("/", "/a").collect::<Vec<_>>(), ["/a", ""]);
        assert_eq!(of(&"/a".repeat(500)).len(), DEPTH_MAX);
    }

    #[test]
    fn memory_controller_of_both_versions_is_found() {
        let groups = "9:name=systemd:/\n4:memory,hugetlb:/job\n0::/user.slice/a:b\n";
        assert_eq!(path_in(groups, str::is_empty).unwrap(), "/user.slice/a:b");
        let memory = |names: &str| names.split(',').any(|name| name == "memory");
        assert_eq!(path_in(groups, memory).unwrap(), "/job");
        assert_eq!(path_in("garbage\n1:x", memory), None);
    }

    #[test]
    fn dirtyable_memory_is_page_cache_plus_room() {
        let group = |limit, room, file, dirty| GroupMemory {
            group: "/a".to_owned(),
            is_version_1: false,
            limit_bytes: limit,
            room_bytes: room,
            file_bytes: file,
            dirty_bytes: dirty,
        };
        for (group, expected) in [
            (group(Some(100), Some(40), Some(50), Some(10)), Some(90)),
            // The clean memory outside the group, 1000 - 100 - 40 bytes, is less than the room.
            (group(Some(9999), Some(5000), Some(50), Some(10)), Some(910)),
            (group(Some(100), Some(0), None, None), Some(0)),
            (group(None, None, Some(50), None), None),
            (GroupMemory { is_version_1: true, ..group(Some(1), Some(1), None, None) }, None),
        ] {
            assert_eq!(group.dirtyable_bytes(1000, 100), expected, "{group:?}");
        }
    }
}
