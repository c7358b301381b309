//! Restores a pool whose disks are all lost from the copies of its members.
//!
//! No copy has the slots: the copies are of slightly different times, and keys may have been moving.
//! Each copy has the key of the hash and the numbers of the members ([`membership`]), so that the
//! slots are those of the keys that the members have.
//!
//! [`membership`]: crate::membership

mod keys;
mod plan;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haul_disk::{Disk, Lock, Locked, error_chain};
use haul_file_store::{Error, Options, Result, Store};

use crate::clearing::clear;
use crate::copies::{CopiedBy, Copies};
use crate::membership::Membership;
use crate::opening::look::{Place, look};
use crate::opening::plan::Found;
use crate::opening::random_id;
use crate::opening::stores::open_or_create;
use crate::pool_file;
use crate::restoring::keys::{Holdings, OpenCopy, read_holdings};
pub use crate::restoring::plan::FoundCopy;
use crate::restoring::plan::{assign, choose, names};
use crate::shared::write_table;
use crate::slots::{Share, SlotHash};
use crate::table::{MemberEntry, Table};
use crate::weights::file_system_bytes;

/// A pool that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredPool {
    /// The members, by number.
    pub members: Vec<RestoredMember>,
    /// The number of slots whose keys are in two members: an open pool moves them.
    pub moving_slots: usize,
}

/// A member that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredMember {
    /// The number, which the member had before.
    pub number: u16,
    /// The directory.
    pub dir: PathBuf,
    /// The time of the copy, in milliseconds since 1970.
    pub written_ms: u64,
}

/// Restores a pool from the copies of its members into directories that are empty or do not exist,
/// in the order of the members' numbers. `found` has all copies that were found; those of members
/// that have left are ignored.
///
/// The members keep their numbers, so that the copies can be continued. The pool gets a new ID, so
/// that a disk of the lost pool is refused if it comes back. When the pool is opened, the members get
/// the buckets of the one whose copy is the newest.
///
/// 1. Checks the copies and the directories. Nothing is changed.
/// 2. Marks the directories, locks the marks, and removes what an earlier attempt left. After a
///    stop in the steps 2 to 4, the directories cannot be opened, and the same call begins again.
/// 3. Restores the copies.
/// 4. Opens the stores for reading, and finds the slots of their keys.
/// 5. Writes the table to all directories. After a stop, all of those that have it are marked, so
///    that the pool is not opened, and the same call begins again.
/// 6. Removes the mark of the member with the newest copy. From here on the directories are the
///    pool. The others keep their marks until they have its buckets.
///
/// # Errors
/// [`Error::Invalid`] if a member has no copy, if there are not as many directories as members, if a
/// directory is not empty, or if the copies are of too different times; [`Error::InUse`]; the errors
/// of [`Copies`]; a failed system call.
///
/// # Durability
/// The pool survives a power cut when this returns.
pub fn restore_pool(
    dirs: &[PathBuf],
    found: &[FoundCopy],
    copies: &dyn Copies,
    options: &Options,
) -> Result<RestoredPool> {
    let absolute = |dir: &Path| std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
    let places = dirs.iter().map(|dir| look(&absolute(dir))).collect();
    restore(places, found, copies, options)
}

/// Restores a pool into the roots of any disks, such as simulated ones, like [`restore_pool`].
///
/// # Errors
/// Fails like [`restore_pool`].
pub fn restore_pool_on(
    disks: &[Arc<dyn Disk>],
    found: &[FoundCopy],
    copies: &dyn Copies,
    options: &Options,
) -> Result<RestoredPool> {
    restore(disks.iter().map(Place::on_disk).collect(), found, copies, options)
}

fn restore(
    places: Vec<Place>,
    found: &[FoundCopy],
    copies: &dyn Copies,
    options: &Options,
) -> Result<RestoredPool> {
    let membership = choose(found).map_err(|what| Error::Invalid { what })?;
    check_places(&places, &membership)?;
    let prepared = places.into_iter().zip(&membership.members);
    let prepared = prepared.map(|(place, number)| Target::prepare(place, *number, options));
    let mut targets = prepared.collect::<Result<Vec<Target>>>()?;
    restore_copies(&mut targets, copies)?;
    let opened = targets.iter().map(|target| target.open(copies, options));
    let opened = opened.collect::<Result<Vec<OpenCopy>>>()?;
    let newest = newest(&targets);
    let hash = SlotHash::new(membership.hash_key);
    let holdings = read_holdings(&opened, newest, hash)?;
    let table = table(&membership, &targets, &holdings)?;
    let disks: Vec<_> = targets.iter().map(|target| Some(Arc::clone(&target.disk))).collect();
    write_table(&table, &disks)?;
    pool_file::unmark(&*targets[newest].disk)?;
    opened.into_iter().try_for_each(|opened| opened.store.close())?;
    let moving_slots = table.slots.iter().filter(|slot| slot.from.is_some()).count();
    let members = targets.into_iter().map(|target| RestoredMember {
        number: target.number,
        dir: target.dir,
        written_ms: target.written_ms,
    });
    Ok(RestoredPool { members: members.collect(), moving_slots })
}

/// Checks that there are as many directories as members, and that each may be overwritten.
fn check_places(places: &[Place], membership: &Membership) -> Result<()> {
    let invalid = |what: String| Err(Error::Invalid { what });
    let members = &membership.members;
    if places.len() != members.len() {
        let (given, count, names) = (places.len(), members.len(), names(members));
        return invalid(format!(
            "the number of directories is {given}, and the pool has {count} members ({names}): \
             give an empty directory for each"
        ));
    }
    for (index, place) in places.iter().enumerate() {
        let dir = place.dir.display();
        if places[..index].iter().any(|other| other.dir == place.dir) {
            return invalid(format!("{dir} was given twice"));
        }
        check_unused(place)?;
    }
    Ok(())
}

/// Checks that a directory has nothing, or what a restore left: it has a mark.
fn check_unused(place: &Place) -> Result<()> {
    let dir = place.dir.display();
    let what = match &place.found {
        Found::Absent | Found::Nothing | Found::Refilling => return Ok(()),
        Found::Member(_) if place.is_restored => return Ok(()),
        Found::Unreadable(why) => format!("{dir} cannot be used: {why}"),
        Found::Store | Found::Foreign(_) | Found::Member(_) => {
            format!(
                "{dir} is not empty, so that no copy is restored into it; empty it to start over"
            )
        }
    };
    Err(Error::Invalid { what })
}

/// A directory into which the copy of a member is restored.
struct Target {
    number: u16,
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    /// The lock of the mark, against another restore. The directory itself is locked by its store
    /// whenever that is open.
    _mark: Lock,
    written_ms: u64,
}

impl Target {
    /// Locks, marks and empties a directory.
    fn prepare(place: Place, number: u16, options: &Options) -> Result<Self> {
        let Place { dir, disk, .. } = place;
        let disk = disk.map_or_else(|| open_or_create(&dir), Ok)?;
        let lock = |name: &str| match disk.lock(name, &options.holder)? {
            Locked::Acquired(lock) => Ok(lock),
            Locked::HeldBy(holder) => Err(Error::InUse { dir: dir.clone(), holder }),
        };
        let _dir = lock("")?;
        // Another process may have put something into it before it was locked.
        check_unused(&Place::on_disk(&disk))?;
        pool_file::mark(&*disk)?;
        let mark = lock(pool_file::MARK)?;
        clear(&*disk)?;
        Ok(Self { number, dir, disk: Arc::clone(&disk), _mark: mark, written_ms: 0 })
    }

    /// Opens the restored store for reading.
    fn open(&self, copies: &dyn Copies, options: &Options) -> Result<OpenCopy> {
        let CopiedBy { disk, replication } =
            copies.prepare(Some(self.number), &self.disk, false)?;
        let options = Options {
            is_read_only: true,
            member: self.number,
            lifecycle_check_every: Duration::ZERO,
            scrub_bytes_per_second: 0,
            replication: Some(replication),
            ..options.clone()
        };
        let disk = disk.unwrap_or_else(|| Arc::clone(&self.disk));
        let (store, _) = Store::open_on(disk, options)?;
        Ok(OpenCopy { member: self.number, written_ms: self.written_ms, store })
    }
}

/// Restores all copies at once.
fn restore_copies(targets: &mut [Target], copies: &dyn Copies) -> Result<()> {
    let restore = |target: &mut Target| -> Result<()> {
        target.written_ms = copies.restore(target.number, &target.disk).map_err(|error| {
            let (number, why) = (target.number, error_chain(&error));
            Error::Invalid { what: format!("cannot restore the copy of member-{number}: {why}") }
        })?;
        Ok(())
    };
    thread::scope(|scope| {
        let restoring: Vec<_> =
            targets.iter_mut().map(|target| scope.spawn(move || restore(target))).collect();
        let panicked = || Err(Error::Stopped { what: "restoring a copy panicked" });
        restoring
            .into_iter()
            .map(|restored| restored.join().unwrap_or_else(|_| panicked()))
            .fold(Ok(()), Result::and)
    })
}

/// Returns the index of the member with the newest copy, whose buckets the others get. Changes of
/// buckets go through the members in their order, so that the first of several has them.
fn newest(targets: &[Target]) -> usize {
    let written_ms = |index: &usize| targets[*index].written_ms;
    (0..targets.len()).rev().max_by_key(written_ms).unwrap_or(0)
}

/// Returns the table of the restored pool. Nothing is recorded about the members' logs, of which the
/// copies may lack the end.
fn table(membership: &Membership, targets: &[Target], holdings: &Holdings) -> Result<Table> {
    let mut members = Vec::new();
    for target in targets {
        let dir = target.dir.display().to_string();
        let number = target.number;
        let id = random_id()?;
        members.push(MemberEntry { number, id, dir, log_end: 0, is_leaving: false });
    }
    let sizes: Option<Vec<u64>> =
        targets.iter().map(|target| file_system_bytes(&target.dir)).collect();
    let sizes = sizes.unwrap_or_else(|| vec![1; targets.len()]);
    let shares = targets.iter().zip(sizes);
    let shares: Vec<Share> =
        shares.map(|(target, weight)| Share { member: target.number, weight }).collect();
    let slots = assign(&holdings.holdings, &holdings.shared, &shares);
    Ok(Table {
        pool: random_id()?,
        hash_key: membership.hash_key,
        generation: membership.generation + 1,
        members,
        next: membership.next,
        slots: slots.map_err(|what| Error::Invalid { what })?,
    })
}
