//! Groups the requests of a run (one call of `read`) by device.

use std::collections::BTreeMap;

use haul_disk::{FileSystem, Storage, probe};

use crate::read::plan::Item;
use crate::read::request::ReadRequest;
use crate::tree::Tree;

/// The maximum number of groups read concurrently. Each further device is merged into a group of a
/// similar device.
const GROUPS_MAX: usize = 32;

/// The number of files probed for the device of a file system. If all probes fail, the device
/// counts as unknown.
const TRIES: usize = 4;

/// The kernel's virtual file systems whose files report no meaningful length.
const NO_LENGTH: [&str; 9] =
    ["proc", "sysfs", "debugfs", "tracefs", "cgroup", "cgroup2", "securityfs", "configfs", "bpf"];

/// The properties of a device, or of a file system without a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::read) struct Device {
    pub(in crate::read) name: String,
    pub(in crate::read) numbers: Vec<u64>,
    pub(in crate::read) rotational: Option<bool>,
    pub(in crate::read) in_memory: bool,
    pub(in crate::read) no_length: bool,
}

/// A device and its requests, in the order of the caller's list.
#[derive(Debug, Default)]
pub(in crate::read) struct Group {
    pub(in crate::read) device: Device,
    pub(in crate::read) items: Vec<Item>,
}

/// Groups the requests by device.
pub(in crate::read) fn groups(tree: &Tree, requests: &[ReadRequest]) -> Vec<Group> {
    let mut by_number: BTreeMap<u64, Vec<Item>> = BTreeMap::new();
    for (index, request) in (0..).zip(requests) {
        let meta = tree.meta(request.file);
        by_number.entry(meta.device).or_default().push(Item {
            request: index,
            dir: tree.dir(request.file).0,
            inode: meta.inode,
            bytes: request.bytes.min(meta.bytes.saturating_sub(request.offset)),
        });
    }
    let mut groups: Vec<Group> = Vec::new();
    for (number, items) in by_number {
        let files = items.iter().map(|item| item.of(requests).file).take(TRIES);
        let storage = files.filter_map(|file| probe(tree.path(file)).ok()).next();
        let device = device(number, storage.as_ref());
        // File systems on one disk share its head, so their requests form one group.
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
        // Merge into any group with the same properties: with more than `GROUPS_MAX` devices,
        // separate threads for each device are not worth their cost.
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
