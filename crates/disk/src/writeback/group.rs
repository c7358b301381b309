//! The control group of a process, as far as it limits what may be dirty.
//!
//! Source: `Documentation/admin-guide/cgroup-v2.rst` (Writeback) and `mm/page-writeback.c`.

use super::files::KernelFiles;
use super::memory::named;
use crate::probe::mounts;

/// How many groups may stand above each other before it is called strange.
const DEPTH_MAX: usize = 64;

/// The memory that a control group may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMemory {
    /// The group, as in `/proc/self/cgroup`.
    pub group: String,
    /// Whether it is one of version 1, in which no part of the kernel limits dirty memory: writers
    /// wait when memory is reclaimed.
    pub is_version_1: bool,
    /// The least that it or a group above it may use; `None` where nothing limits it.
    pub limit_bytes: Option<u64>,
    /// How much more it may use now.
    pub room_bytes: Option<u64>,
    /// What it has of files in memory.
    pub file_bytes: Option<u64>,
    /// What of this is dirty.
    pub dirty_bytes: Option<u64>,
}

impl GroupMemory {
    /// What may be dirty in it, where `machine_bytes` may be on the machine and `dirty_bytes` of
    /// that are. `None` where nothing limits it.
    #[must_use]
    pub fn dirtyable_bytes(&self, machine_bytes: u64, dirty_bytes: u64) -> Option<u64> {
        if self.is_version_1 {
            return None;
        }
        self.limit_bytes?;
        let (room, file) = (self.room_bytes?, self.file_bytes.unwrap_or(0));
        let clean = file.saturating_sub(self.dirty_bytes.unwrap_or(0));
        let of_others = machine_bytes.saturating_sub(dirty_bytes).saturating_sub(clean);
        Some(file.saturating_add(room.min(of_others)))
    }
}

/// The group of the process that asks; `None` where there are none.
pub(super) fn of_self(files: &KernelFiles) -> Option<GroupMemory> {
    let groups = files.text("/proc/self/cgroup")?;
    let mountinfo = files.text("/proc/self/mountinfo")?;
    // The memory of a process is managed by one of the two versions.
    let two = path_in(&groups, |controllers| controllers.is_empty())
        .and_then(|group| version_2(files, &mount_point(&mountinfo, "cgroup2", None)?, &group));
    two.or_else(|| {
        let is_memory = |controllers: &str| controllers.split(',').any(|name| name == "memory");
        let group = path_in(&groups, is_memory)?;
        version_1(files, &mount_point(&mountinfo, "cgroup", Some("memory"))?, &group)
    })
}

/// The path in the line of `/proc/self/cgroup` whose controllers are such.
fn path_in(groups: &str, is_such: impl Fn(&str) -> bool) -> Option<String> {
    groups.lines().find_map(|line| {
        let (_number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        is_such(controllers).then(|| path.to_owned())
    })
}

fn mount_point(mountinfo: &str, kind: &str, option: Option<&str>) -> Option<String> {
    let is_it = |mount: &mounts::Line| {
        let mount = &mount.mount;
        mount.file_system == kind && option.is_none_or(|option| mount.has_option(option))
    };
    mounts::all(mountinfo).find(is_it).map(|line| line.mount.point)
}

/// The group's directory and those above it, up to the mount.
fn chain(point: &str, group: &str) -> impl Iterator<Item = String> {
    let mut rest = Some(group.trim_end_matches('/').to_owned());
    std::iter::from_fn(move || {
        let group = rest.take()?;
        rest = group.rfind('/').map(|at| group[..at].to_owned());
        Some(format!("{}{group}", point.trim_end_matches('/')))
    })
    .take(DEPTH_MAX)
}

fn version_2(files: &KernelFiles, point: &str, group: &str) -> Option<GroupMemory> {
    let own = chain(point, group).next()?;
    let stat = files.text(&format!("{own}/memory.stat"));
    let (mut limit_bytes, mut room_bytes, mut is_managed) = (None::<u64>, None::<u64>, false);
    for dir in chain(point, group) {
        // The topmost group has no such files: it is the machine.
        let Some(used) = files.number(&format!("{dir}/memory.current")) else { continue };
        is_managed = true;
        let most = |name: &str| at_most(files, &format!("{dir}/{name}"), "max");
        let Some(limit) = [most("memory.high"), most("memory.max")].into_iter().flatten().min()
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
    // "No limit" is a huge number there.
    const HUGE: u64 = 1 << 60;
    let limits: Vec<u64> = chain(point, group)
        .filter_map(|dir| files.number(&format!("{dir}/memory.limit_in_bytes")))
        .collect();
    let least = limits.iter().copied().min()?;
    Some(GroupMemory {
        group: group.to_owned(),
        is_version_1: true,
        limit_bytes: (least < HUGE).then_some(least),
        room_bytes: None,
        file_bytes: None,
        dirty_bytes: None,
    })
}

/// A number, or a word for "as much as there is".
fn at_most(files: &KernelFiles, path: &str, no_limit: &str) -> Option<u64> {
    let text = files.text(path)?;
    if text.trim() == no_limit {
        return None;
    }
    let number = text.trim().parse().ok();
    if number.is_none() {
        files.not_understood(path, &text);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_all_above_it_are_asked() {
        let of = |group| chain("/sys/fs/cgroup", group).collect::<Vec<_>>();
        assert_eq!(
            of("/a/b"),
            ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"].map(str::to_owned)
        );
        assert_eq!(of("/"), ["/sys/fs/cgroup"]);
        assert_eq!(chain("/", "/a").collect::<Vec<_>>(), ["/a", ""]);
        assert_eq!(of(&"/a".repeat(500)).len(), DEPTH_MAX);
    }

    #[test]
    fn the_memory_of_both_versions_is_found() {
        let groups = "9:name=systemd:/\n4:memory,hugetlb:/job\n0::/user.slice/a:b\n";
        assert_eq!(path_in(groups, str::is_empty).unwrap(), "/user.slice/a:b");
        let memory = |names: &str| names.split(',').any(|name| name == "memory");
        assert_eq!(path_in(groups, memory).unwrap(), "/job");
        assert_eq!(path_in("garbage\n1:x", memory), None);
    }

    #[test]
    fn what_may_be_dirty_in_a_group_is_what_it_has_and_what_it_may_still_get() {
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
            // Others have 1000 - 100 - 40 clean at most: the room is not worth more.
            (group(Some(9999), Some(5000), Some(50), Some(10)), Some(910)),
            (group(Some(100), Some(0), None, None), Some(0)),
            (group(None, None, Some(50), None), None),
            (GroupMemory { is_version_1: true, ..group(Some(1), Some(1), None, None) }, None),
        ] {
            assert_eq!(group.dirtyable_bytes(1000, 100), expected, "{group:?}");
        }
    }
}
