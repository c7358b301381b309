//! Removes the members that are lost, and those that have left, from the plan for opening a pool.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haul_file_store::{Error, Result};

use crate::moves::plan::give_up;
use crate::opening::look::Place;
use crate::opening::plan::{Found, OpenPlan, member_in};
use crate::table::MemberEntry;
use crate::weights::file_system_bytes;

/// Gives the slots of the members in `lost` to the others. Returns their directories.
pub(super) fn give_up_lost(plan: &mut OpenPlan, lost: &[Place]) -> Result<Vec<PathBuf>> {
    let invalid = |what: String| Err(Error::Invalid { what });
    let members = plan.table.members.iter().zip(&plan.members);
    let given = members.filter(|(_, found)| found.is_ok());
    let given: Vec<MemberEntry> = given.map(|(entry, _)| entry.clone()).collect();
    let mut given_up = Vec::new();
    for Place { dir, found, .. } in lost {
        let name = dir.display().to_string();
        let mut entries = plan.table.members.iter().zip(&plan.members);
        let is_lost = |(entry, found): (&MemberEntry, &std::result::Result<usize, String>)| {
            entry.dir == name && found.is_err()
        };
        let Some(position) = entries.position(is_lost) else {
            match plan.table.members.iter().any(|entry| entry.dir == name) {
                true => return invalid(format!("{name} is not missing, so that it is not lost")),
                false => continue,
            }
        };
        // One that went on without the members that were given is lost for them.
        if let Found::Member(file) = found
            && member_in(&plan.table, file) == Some(position)
            && given.iter().all(|entry| file.table.has_member(entry))
        {
            return invalid(format!(
                "{name} has a disk of the store, which is not lost: give it with the others, or \
                 move it away if it is an older copy"
            ));
        }
        drop(plan.members.remove(position));
        given_up.push(dir.clone());
        let number = plan.table.members[position].number;
        let sizes = |number| {
            let entry = plan.table.member(number)?;
            file_system_bytes(Path::new(&entry.dir))
        };
        let sizes: BTreeMap<u16, u64> = (plan.table.members.iter())
            .filter_map(|entry| Some((entry.number, sizes(entry.number)?)))
            .collect();
        give_up(&mut plan.table, number, |number| sizes.get(&number).copied().unwrap_or(1));
        // The lost disk may have the table of one more change, which the others did not get.
        plan.table.generation += 2;
        plan.must_write = true;
    }
    let mut members = plan.table.members.iter().zip(&plan.members);
    match members.find(|(_, found)| found.is_err()) {
        Some((entry, _)) if !lost.is_empty() => invalid(format!(
            "{} is missing, and its loss is not accepted; nothing was changed",
            entry.dir
        )),
        _ => Ok(given_up),
    }
}

/// Removes the members that have left from the table, which is written when the pool is opened.
pub(super) fn remove_gone(plan: &mut OpenPlan) {
    let table = &mut plan.table;
    let mut members = std::mem::take(&mut plan.members).into_iter();
    for entry in table.members.clone() {
        let member = members.next();
        if entry.is_leaving && !table.has_slots(entry.number) {
            table.members.retain(|member| member.number != entry.number);
            table.generation += 1;
            plan.must_write = true;
            plan.left.extend(member.and_then(std::result::Result::ok));
        } else {
            plan.members.extend(member);
        }
    }
}
