//! What the control group of this process changes for its writers. Pure.

use super::{Finding, Weight};
use crate::tune::case::Case;
use crate::units::Bytes;

const SOURCE: &str = "Linux, Documentation/admin-guide/cgroup-v2.rst, Writeback";

/// A group in which less than this may be dirty makes its writers wait all the time.
const LITTLE_BYTES: u64 = 32 << 20;

pub(super) fn findings(case: &Case) -> Option<Finding> {
    let group = case.machine.group.as_ref()?;
    let limit = group.limit_bytes?;
    let about = format!("group {}", group.group);
    if group.is_version_1 {
        if case.machine.memory.total_bytes.is_some_and(|total| limit >= total) {
            return None;
        }
        let text = format!(
            "this process may use {} (control groups of version 1): the kernel keeps no dirty limit \
             for it, so its writers do not slow down before the group is full, and wait for the \
             disk then whatever they want memory for",
            Bytes(limit)
        );
        return Some(Finding::new("group of version 1", &about, Weight::Slow, text).source(SOURCE));
    }
    let limits = case.machine.group_limits()?;
    (limits.limit_bytes < LITTLE_BYTES).then(|| {
        let text = format!(
            "in the control group of this process only {} may be dirty, of the {} it may use: its \
             writers wait early and often. The shares are those of the machine; more memory for the \
             group helps",
            Bytes(limits.limit_bytes),
            Bytes(limit),
        );
        Finding::new("little memory in the group", &about, Weight::Slow, text).source(SOURCE)
    })
}

#[cfg(test)]
mod tests {
    use haul_disk::GroupMemory;

    use super::*;
    use crate::tune::advice::tests::names;
    use crate::tune::case::tests::{GIB, MIB, case};

    #[test]
    fn a_group_is_told_of_where_it_holds_writers_back() {
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
            // A fifth of it may be dirty.
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
