//! Restores the copy of a lost member into an empty directory, which becomes this member.

use std::path::Path;
use std::sync::Arc;

use haul_disk::{Disk, Locked, error_chain};
use haul_file_store::{Error, Result, Store};

use crate::clearing::clear;
use crate::member::Member;
use crate::opening::look::Place;
use crate::opening::plan::{Found, OpenPlan};
use crate::opening::stores::{Chosen, MemberStore, OpenedStore, StoreOptions, open_or_create};
use crate::pool_file;
use crate::routes::Routes;
use crate::settling::settle_restored;
use crate::shared::write_table;
use crate::table::{PoolFile, Table};

/// A directory to refill: its index, and the position of the missing member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) place: usize,
    pub(super) position: usize,
}

/// Finds the member that is to be restored into `dir`; `None` if the directory has a member.
///
/// # Errors
/// [`Error::Invalid`] if the directory was not given or is not empty, or if not exactly one member
/// is missing.
pub(super) fn target(
    plan: &OpenPlan,
    places: &[Option<Place>],
    dir: &Path,
) -> Result<Option<Target>> {
    let invalid = |what: String| Err(Error::Invalid { what });
    let name = dir.display();
    let is_at = |place: &Option<Place>| place.as_ref().is_some_and(|place| place.dir == dir);
    let Some(index) = places.iter().position(is_at) else {
        return invalid(format!("{name} is not one of the directories"));
    };
    if plan.members.contains(&Ok(index)) {
        return Ok(None);
    }
    if let Some(place) = &places[index] {
        check_empty(&place.found, dir)?;
    }
    let missing: Vec<usize> =
        (0..plan.members.len()).filter(|member| plan.members[*member].is_err()).collect();
    match *missing {
        [position] => Ok(Some(Target { place: index, position })),
        [] => invalid(format!("no directory is missing, so that {name} cannot be refilled")),
        _ => {
            let dirs = missing.iter().map(|member| &*plan.table.members[*member].dir);
            let dirs = dirs.collect::<Vec<_>>().join(", ");
            let what = format!("{dirs} are missing: one is refilled when all others are there");
            invalid(what)
        }
    }
}

/// Checks that a directory has nothing, or the rest of a refill.
fn check_empty(found: &Found, dir: &Path) -> Result<()> {
    if matches!(found, Found::Absent | Found::Nothing | Found::Refilling) {
        return Ok(());
    }
    let dir = dir.display();
    let what = format!("{dir} is not empty, so that no copy is restored into it");
    Err(Error::Invalid { what })
}

/// Restores the copy of the missing member. The stores of all others are open, so that no other
/// process has the pool.
///
/// 1. Marks the directory, so that its content counts neither as a store nor as a new member.
/// 2. Removes what an earlier attempt left, and restores the copy. After a stop in steps 1 and 2, the
///    member is missing as before, and the same call begins again.
/// 3. Writes the table to all other members. The member has another ID, so that the lost disk is
///    refused if it comes back, and nothing is recorded about its log, of which the copy may lack
///    the end. After a stop, the member is missing, and the same call begins again.
/// 4. Writes the table to the directory, which is the member from here on. After a stop, the pool
///    opens with it. Because of the mark, [`take_over_buckets`] follows.
///
/// # Errors
/// [`Error::Invalid`] if another member cannot be opened; the copy is absent or damaged, or a
/// system call fails. In these cases the other members are unchanged before step 3.
pub(super) fn refill(
    table: &mut Table,
    stores: &[MemberStore],
    target: Target,
    place: Place,
    options: &StoreOptions<'_>,
) -> Result<OpenedStore> {
    let Some(copies) = options.copies else {
        return Err(Error::Invalid { what: "the members have no copies".to_owned() });
    };
    for (number, MemberStore { dir, opened }) in stores.iter().enumerate() {
        if let (Err(why), true) = (opened, number != target.position) {
            let (dir, new) = (dir.display(), place.dir.display());
            let what = format!("{new} cannot be refilled while {dir} is missing, too: {why}");
            return Err(Error::Invalid { what });
        }
    }
    let entry = &mut table.members[target.position];
    copies.check(entry.number)?;
    let disk = place.disk.clone().map_or_else(|| open_or_create(&place.dir), Ok)?;
    let lock = match disk.lock("", options.holder())? {
        Locked::Acquired(lock) => lock,
        Locked::HeldBy(holder) => return Err(Error::InUse { dir: place.dir, holder }),
    };
    // Another process may have put something into it before it was locked.
    check_empty(&Place::on_disk(&disk).found, &place.dir)?;
    pool_file::mark(&*disk)?;
    clear(&*disk)?;
    copies.restore(entry.number, &disk)?;
    (entry.id, entry.log_end) = (u128::from_le_bytes(haul_disk::random_bytes()?), 0);
    entry.dir = place.dir.display().to_string();
    let number = entry.number;
    // The lost disk may have the table of one more change, which the others did not get.
    table.generation += 2;
    let open = |store: &MemberStore| Some(Arc::clone(&store.opened.as_ref().ok()?.disk));
    write_table(table, &stores.iter().map(open).collect::<Vec<_>>())?;
    pool_file::write(&*disk, &PoolFile { own: number, table: table.clone() })?;
    drop(lock);
    let place = Place { disk: Some(disk), is_restored: true, ..place };
    options.open(Chosen { place, number, is_new: false })
}

/// Completes the refill of members, of which `restored` has the positions: they get the buckets and
/// settings of a member that was not lost, and lose the keys that are not theirs.
///
/// 1. Changes the buckets and the keys of the restored member. After a stop, this begins again.
/// 2. Removes the mark. From here on it is a member like the others.
///
/// # Errors
/// [`Error::Invalid`] if no other member is open, or the restored one cannot be changed.
pub(super) fn take_over_buckets(
    table: &Table,
    members: &[Member],
    restored: &[usize],
    disks: &[Option<Arc<dyn Disk>>],
) -> Result<()> {
    let routes = Routes::new(table);
    let others = (0..members.len()).filter(|position| !restored.contains(position));
    let reference = others.filter_map(|position| members[position].store().ok()).next();
    for position in restored.iter().copied() {
        let (Ok(store), Some(disk)) = (members[position].store(), &disks[position]) else {
            continue;
        };
        let is_own = |bucket: &str, key: &str| {
            let route = routes.route(bucket, key);
            route.to == position || route.from == Some(position)
        };
        let settle = |reference: &Arc<Store>| settle_restored(reference, store, is_own);
        let failed = |why: &str| {
            let dir = members[position].dir().display();
            let what = format!(
                "{dir} was restored from its copy, and cannot get the buckets of the others: {why}"
            );
            Error::Invalid { what }
        };
        let settled = settle(reference.ok_or_else(|| failed("none of them is there"))?);
        settled.map_err(|error| failed(&error_chain(&error)))?;
        pool_file::unmark(&**disk)?;
    }
    Ok(())
}
