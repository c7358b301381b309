//! Reports a memory limit of this process's control group that slows writers down.

use crate::case::Case;
use crate::finding::{Finding, Severity};
use haul_units::Bytes;

const SOURCE: &str = "Linux, Documentation/admin-guide/cgroup-v2.rst, Writeback";

/// The limit of dirty memory of a group, in bytes, below which the kernel throttles the group's
/// writers nearly always.
const LITTLE_BYTES: u64 = 32 << 20;

pub(crate) fn findings(case: &Case) -> Option<Finding> {
    let group = case.machine.group.as_ref()?;
    let limit = group.limit_bytes?;
    let about = format!("group {}", group.group);
    if group.is_version_1 {
        if case.machine.memory.total_bytes.is_some_and(|total| limit >= total) {
            return None;
        }
        let text = format!(
            "this process is limited to {} (control groups version 1): the kernel has no dirty limit \
             per group, so writers are not throttled until the group is full, and all its memory \
             allocations then wait for the disk",
            Bytes(limit)
        );
        return Some(
            Finding::new("group of version 1", &about, Severity::Slow, text).source(SOURCE),
        );
    }
    let limits = case.machine.group_limits()?;
    (limits.limit_bytes < LITTLE_BYTES).then(|| {
        let text = format!(
            "in the control group of this process only {} of {} may be dirty: writers are throttled \
             early and often. The ratios are those of the machine; more memory for the group helps",
            Bytes(limits.limit_bytes),
            Bytes(limit),
        );
        Finding::new("little memory in the group", &about, Severity::Slow, text).source(SOURCE)
    })
}

#[cfg(test)]
mod tests {
    use haul_disk::GroupMemory;

    use super::*;
    use crate::advice::tests::names;
    use crate::case::tests::{GIB, MIB, case};

    #[test]
    fn restrictive_groups_are_found() {
        let group = |is_version_1, limit: Option<u64>| GroupMemory {
            group: "/job".to_owned(),
            is_version_1,
            limit_bytes: limit,
            room_bytes: limit,
            file_bytes: Some(0),
            dirty_bytes: Some(0),
        };
        for (group, expected) in [
            (None, None),
            (Some(group(true, Some(GIB))), Some("group of version 1")),
            (Some(group(true, Some(64 * GIB))), None),
            (Some(group(true, None)), None),
            // A fifth of 128 MiB may be dirty.
            (Some(group(false, Some(128 * MIB))), Some("little memory in the group")),
            (Some(group(false, Some(GIB))), None),
            (Some(group(false, None)), None),
        ] {
            let mut case = case(vec![]);
            case.machine.group = group;
            let found: Vec<_> = findings(&case).into_iter().collect();
            assert_eq!(names(&found), Vec::from_iter(expected), "{:?}", case.machine.group);
        }
    }
}
