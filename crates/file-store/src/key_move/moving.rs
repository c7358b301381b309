//! The protocol of a move, and the listing of the keys to move.

use std::sync::Arc;

use haul_append_log::Lsn;

use crate::error::{Error, Result};
use crate::index::stored_keys::stored_keys;
use crate::key_move::copy::{CopyStep, copy_batch};
use crate::key_move::files::CopiedFiles;
use crate::key_move::moved::MovedKey;
use crate::key_move::remove::{RemoveStep, discard_batch, remove_batch};
use crate::key_move::state::KeyName;
use crate::keys::check_key;
use crate::replication::confirmation::{acknowledge, confirm};
use crate::store::Store;

impl Store {
    /// Returns the first `limit` keys after `after`, in byte order, under which anything is stored
    /// in a bucket: a current object, only older versions or delete markers, or only unfinished
    /// uploads. Fewer than `limit` keys are the last ones.
    ///
    /// A key under which something is stored all the time is listed, even while other threads
    /// change it.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] while damage may hide keys.
    pub fn stored_keys(
        &self,
        bucket: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>> {
        let inner = &*self.inner;
        let index = inner.keyspace.index.read();
        if let Some(error) = index.any_possible_corruption() {
            return Err(error);
        }
        index.check_bucket(bucket)?;
        drop(index);
        let listed = stored_keys(&inner.keyspace.index, bucket, after, limit);
        listed.map_err(|error| inner.note_index_damage(error))
    }

    /// Moves everything that is stored under a key to another store of a pool, which has the same
    /// bucket ([`NewBucket::id`](crate::NewBucket::id)): the current object, older versions, delete
    /// markers, and unfinished uploads with their parts. Their version IDs, times, ETags, attributes
    /// with object locks, part lengths and upload IDs stay. Returns what was moved; nothing if
    /// nothing is stored under the key.
    ///
    /// Only a pool calls this, and moves a key in one direction at a time. Until the call returns,
    /// and after a crash, each store may have a part of the key's state, and both together have all
    /// of it: what both have is the same, and the newest version is the current one. A reader that
    /// finds nothing in `to` and then nothing here looks in `to` again. A repeated call completes
    /// the move. If both stores have a version, that of `to` counts. Meanwhile a version that both
    /// stores have counts twice against a quota that they share; the move itself is never rejected
    /// by a quota.
    ///
    /// Reads, and changes of other keys, proceed meanwhile. A file that several keys share is copied
    /// for each of them.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::InvalidBucketState`] if the buckets differ;
    /// [`Error::Damaged`] if anything under the key cannot be read, or while damage may hide
    /// anything in one of the stores: nothing was removed then, and unless the key has more than
    /// 1,024 needles, nothing was stored, either. [`Error::Full`] or [`Error::Stalled`] if one of the
    /// stores has no space; [`Error::NotReplicated`] if a store's copy does not confirm the change.
    ///
    /// # Durability
    /// Everything under the key survives a power cut at any moment. When this returns, it is durable
    /// in `to`, and so is its removal here.
    pub fn move_key(&self, to: &Self, bucket: &str, key: &str) -> Result<MovedKey> {
        acknowledge(&self.inner, self.try_move_key(to, bucket, key))
    }

    /// Removes everything that is stored under a key, also versions that are locked: the store was
    /// restored from an earlier state, and the key no longer belongs to it. Only a pool calls this.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] if a needle cannot be read, or while damage may
    /// hide anything; [`Error::Full`]; [`Error::NotReplicated`] if the store's copy does not confirm
    /// the removal.
    ///
    /// # Durability
    /// The removal survives a power cut when this returns. After a crash before, a part may remain.
    pub fn discard_key(&self, bucket: &str, key: &str) -> Result<()> {
        check_key(key)?;
        self.inner.check_writable()?;
        let name = KeyName { bucket, key };
        let discard = || -> Result<()> {
            while !self.inner.with_space(|| discard_batch(&self.inner, name))? {}
            Ok(())
        };
        acknowledge(&self.inner, discard())
    }

    /// Moves a key.
    ///
    /// 1. Copies the files of big objects, without a lock. After a crash no needle references them,
    ///    and opening `to` removes them.
    /// 2. Copies the needles that `to` lacks, and waits until they are durable
    ///    ([`copy_batch`]). After a crash `to` has some of them, the newest version last: a reader
    ///    finds the current object in this store.
    /// 3. Waits until the copy of `to` has confirmed them, if there is one. The caller may hold no
    ///    lock for that.
    /// 4. Locks the key in this store. If `to` has everything, removes it from this store
    ///    ([`remove_batch`]); otherwise continues at 1. After a crash before this step, both stores
    ///    have everything; after a crash during it, this store still has a part, the newest version
    ///    last: a reader finds everything in `to`.
    ///
    /// The steps 2 and 4 repeat for a key with many needles, because writers that begin after a
    /// checkpoint wait until the locks are released.
    fn try_move_key(&self, to: &Self, bucket: &str, key: &str) -> Result<MovedKey> {
        check_key(key)?;
        if Arc::ptr_eq(&self.inner, &to.inner) {
            let what = "a key is moved to another store than that in which it is".to_owned();
            return Err(Error::Invalid { what });
        }
        self.inner.check_writable()?;
        to.inner.check_writable()?;
        let name = KeyName { bucket, key };
        let (mut files, mut moved) = (CopiedFiles::default(), MovedKey::default());
        loop {
            self.copy_key(to, name, &mut files)?;
            let confirmed = to.confirm_all()?;
            let remove = || remove_batch(&self.inner, &to.inner, name, confirmed);
            match self.inner.with_space(remove)? {
                RemoveStep::NotCopied => {}
                RemoveStep::Removed { moved: removed, is_all } => {
                    moved.add(removed);
                    if is_all {
                        return Ok(moved);
                    }
                }
            }
        }
    }

    /// Copies everything that `to` lacks of a key.
    fn copy_key(&self, to: &Self, name: KeyName<'_>, files: &mut CopiedFiles) -> Result<()> {
        loop {
            // Delays the move while compaction falls behind. The needles' bytes are counted as they
            // are appended.
            to.inner.maintenance.admission.admit(0);
            let copy = || copy_batch(&self.inner, &to.inner, name, files);
            match to.inner.with_space(copy)? {
                CopyStep::Complete => return Ok(()),
                CopyStep::NeedsFiles(missing) => files.copy(&missing, to)?,
                CopyStep::Copied => {}
            }
        }
    }

    /// Waits until everything that is durable now is confirmed. Returns the end of that.
    fn confirm_all(&self) -> Result<Lsn> {
        let end = self.inner.volumes.log.synced();
        confirm(&self.inner).map(|()| end)
    }
}
