//! The devices the wants are on.

use std::collections::BTreeMap;

use haul_disk::{FileSystem, Storage, probe};

use super::Want;
use super::plan::Item;
use crate::tree::Tree;

/// More devices than this are read one after the other, in part.
const GROUPS_MAX: usize = 32;

/// How many files are tried before nothing is known of a device.
const TRIES: usize = 4;

/// The kernel's file systems whose files have no length that means anything.
const NO_LENGTH: [&str; 9] =
    ["proc", "sysfs", "debugfs", "tracefs", "cgroup", "cgroup2", "securityfs", "configfs", "bpf"];

/// What is known of the device, or file system, some wants are on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) numbers: Vec<u64>,
    pub(super) rotational: Option<bool>,
    pub(super) in_memory: bool,
    pub(super) no_length: bool,
}

/// A device, and what is wanted of it, as it was given.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) device: Device,
    pub(super) items: Vec<Item>,
}

/// Sorts the wants by device.
pub(super) fn groups(tree: &Tree, wants: &[Want]) -> Vec<Group> {
    let mut by_number: BTreeMap<u64, Vec<Item>> = BTreeMap::new();
    for (index, want) in (0..).zip(wants) {
        let meta = tree.meta(want.file);
        by_number.entry(meta.device).or_default().push(Item {
            want: index,
            dir: tree.dir(want.file).0,
            inode: meta.inode,
            bytes: want.bytes.min(meta.bytes.saturating_sub(want.offset)),
        });
    }
    let mut groups: Vec<Group> = Vec::new();
    for (number, items) in by_number {
        let files = items.iter().map(|item| item.of(wants).file).take(TRIES);
        let storage = files.filter_map(|file| probe(tree.path(file)).ok()).next();
        let device = device(number, storage.as_ref());
        // Several file systems of one disk share its arm.
        let known = groups.iter_mut().find(|group| group.device.name == device.name);
        match known {
            Some(group) => {
                group.device.numbers.push(number);
                group.items.extend(items);
            }
            None => groups.push(Group { device, items }),
        }
    }
    while groups.len() > GROUPS_MAX {
        let Some(last) = groups.pop() else { break };
        // All of its kind do: what differs between them is not worth a thread each.
        match groups.iter_mut().rev().find(|group| is_alike(&group.device, &last.device)) {
            Some(group) => group.items.extend(last.items),
            None => {
                groups.push(last);
                break;
            }
        }
    }
    groups
}

fn is_alike(a: &Device, b: &Device) -> bool {
    (a.rotational, a.in_memory, a.no_length) == (b.rotational, b.in_memory, b.no_length)
}

fn device(number: u64, storage: Option<&Storage>) -> Device {
    let Some(storage) = storage else {
        return Device { name: format!("{number:#x}"), numbers: vec![number], ..Device::default() };
    };
    let file_system = storage.file_system.to_string();
    let name = match &storage.device {
        Some(device) => device.disk.clone(),
        None => format!("{file_system} {number:#x}"),
    };
    Device {
        name,
        numbers: vec![number],
        rotational: storage.queue.rotational,
        in_memory: storage.file_system == FileSystem::Tmpfs || file_system == "ramfs",
        no_length: NO_LENGTH.contains(&file_system.as_str()),
    }
}
