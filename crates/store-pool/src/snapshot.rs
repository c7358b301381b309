//! Snapshots of a pool: one of each member.

use std::fs;
use std::path::Path;

use haul_disk::OsDisk;
use haul_file_store::{Error, Result, SnapshotInfo};

use crate::member::Member;
use crate::pool_file;
use crate::shared::Shared;
use crate::table::PoolFile;

/// Creates the snapshot of a pool with a table: see [`crate::Pool::snapshot`].
pub(crate) fn create(members: &[Member], shared: &Shared, to: &Path) -> Result<SnapshotInfo> {
    // No bucket changes in between, so that all members have the same.
    let _buckets = shared.bucket_changes.lock();
    let stores: Vec<_> = members.iter().map(Member::store).collect::<Result<_>>()?;
    // No slot moves in between, so that each key is in one of the snapshots.
    let table = shared.table.lock();
    if table.has_moves() {
        let what = "keys are being moved between the disks; try again later".to_owned();
        return Err(Error::Invalid { what });
    }
    let created = |source| haul_disk::Error::new(haul_disk::Op::Create, to, source);
    fs::create_dir_all(to).map_err(created)?;
    let mut all = SnapshotInfo::default();
    for (entry, store) in table.members.iter().zip(stores) {
        let dir = to.join(entry.number.to_string());
        let log_end = store.log().synced().0;
        all = all.plus(&store.snapshot(&dir)?);
        let mut table = table.clone();
        for member in &mut table.members {
            // The others may be older than the positions that were recorded of them.
            member.log_end = 0;
            if member.number == entry.number {
                member.log_end = log_end;
            }
            member.dir = to.join(member.number.to_string()).display().to_string();
        }
        pool_file::write(&OsDisk::open(&dir)?, &PoolFile { own: entry.number, table })?;
    }
    Ok(all)
}
