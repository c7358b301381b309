//! The state that a pool and its thread share, and changes of the table: durable in the files of all
//! members, and then in force.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use haul_disk::Disk;
use haul_file_store::Result;
use haul_sync::{Mutex, ShardedRwLock};

use crate::member::Member;
use crate::pace::Pace;
use crate::pool_file;
use crate::progress::MoveCounters;
use crate::routes::Routes;
use crate::table::{PoolFile, Table};

/// The state of a pool with a table.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Held for reading by each call of a key, so that a change of the table waits for it.
    pub(crate) routes: ShardedRwLock<Routes>,
    /// The table, as the members' files have it.
    pub(crate) table: Mutex<Table>,
    /// Held while a bucket or its settings change.
    pub(crate) bucket_changes: Mutex<()>,
    /// The reason why buckets cannot be changed: they differ between members.
    pub(crate) unsettled: Option<String>,
    /// The members' disks, for their pool files; `None` for a missing member.
    pub(crate) disks: Vec<Option<Arc<dyn Disk>>>,
    pub(crate) moves: MoveCounters,
    pub(crate) pace: Pace,
}

impl Shared {
    /// Writes the positions that the members' logs have reached, if any has advanced.
    ///
    /// # Errors
    /// A failed write of a member.
    pub(crate) fn record_log_ends(&self, members: &[Member]) -> Result<()> {
        let mut table = self.table.lock();
        if !update_log_ends(&mut table, members) {
            return Ok(());
        }
        write_table(&table, &self.disks)
    }

    /// Changes the slots of the pool. The change is in force when this returns, and no call still
    /// uses the previous table.
    ///
    /// 1. Writes the new table to the files of all members. After a crash in between, the newest
    ///    table counts: opening the pool writes it to the others.
    /// 2. Waits for the calls that use the previous table, and replaces it.
    ///
    /// # Errors
    /// A failed write of a member: then the previous table stays in force, and opening the pool may
    /// find either.
    ///
    /// [`Self::end_moves`] does not wait.
    pub(crate) fn change_table(
        &self,
        members: &[Member],
        change: impl FnOnce(&mut Table),
    ) -> Result<()> {
        let mut table = self.table.lock();
        let changed = self.write_changed(&table, members, change)?;
        *self.routes.write() = Routes::new(&changed);
        self.moves.slots_left.store(changed.slots_to_move(), Relaxed);
        *table = changed;
        Ok(())
    }

    /// Ends the moves of all slots, whose old members have no keys of them. Calls that still look at
    /// an old member find nothing there, so that no call waits for another one.
    ///
    /// # Errors
    /// Fails like [`Self::change_table`].
    pub(crate) fn end_moves(&self, members: &[Member]) -> Result<()> {
        let mut table = self.table.lock();
        let changed = self.write_changed(&table, members, Table::end_moves)?;
        self.routes.read().end_moves();
        self.moves.slots_left.store(changed.slots_to_move(), Relaxed);
        *table = changed;
        Ok(())
    }

    /// Writes a changed table to the files of all members.
    fn write_changed(
        &self,
        table: &Table,
        members: &[Member],
        change: impl FnOnce(&mut Table),
    ) -> Result<Table> {
        let mut changed = table.clone();
        change(&mut changed);
        changed.generation += 1;
        update_log_ends(&mut changed, members);
        write_table(&changed, &self.disks)?;
        Ok(changed)
    }
}

/// Updates the positions in `table`. Returns `true` if any has advanced.
pub(crate) fn update_log_ends(table: &mut Table, members: &[Member]) -> bool {
    let mut has_advanced = false;
    for (entry, member) in table.members.iter_mut().zip(members) {
        let Ok(store) = member.store() else { continue };
        let end = store.log().synced().0;
        has_advanced |= end > entry.log_end;
        entry.log_end = entry.log_end.max(end);
    }
    has_advanced
}

/// Writes the table to all members that are there, first to the last one: a new member has its file
/// before another one lists it. Stops at a failed write, so that no member is ever more than one
/// change behind the others: of two consecutive tables, the earlier one alone accepts no write that
/// the later one would not find.
///
/// # Errors
/// A failed write.
pub(crate) fn write_table(table: &Table, disks: &[Option<Arc<dyn Disk>>]) -> Result<()> {
    for (entry, disk) in table.members.iter().zip(disks).rev() {
        if let Some(disk) = disk {
            let file = PoolFile { own: entry.number, table: table.clone() };
            debug_assert_eq!(file.check(), Ok(()), "a table is written that no reader accepts");
            pool_file::write(&**disk, &file)?;
        }
    }
    Ok(())
}
