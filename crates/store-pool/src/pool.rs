//! An open pool, and the member of each key.

use std::path::Path;
use std::sync::Arc;

use haul_file_store::{Error, Result, Store};

use crate::events::PoolEvents;
use crate::member::Member;
use crate::moves::move_key_for_write;
use crate::shared::Shared;
use crate::upkeep::Upkeep;

/// A pool of stores over several directories, each with its own disk. It has the operations of a
/// [`Store`], and forwards each to the member that has the key.
///
/// A pool of one directory is the store in it, without any state of its own.
#[derive(Debug)]
pub struct Pool {
    pub(crate) members: Arc<Vec<Member>>,
    /// `None` for a store of its own.
    pub(crate) shared: Option<Arc<Shared>>,
    pub(crate) upkeep: Option<Upkeep>,
}

/// A store that is served alone.
impl From<Arc<Store>> for Pool {
    fn from(store: Arc<Store>) -> Self {
        let dir = store.dir().to_path_buf();
        let only = Member::new(0, dir, Ok(store));
        Self { members: Arc::new(vec![only]), shared: None, upkeep: None }
    }
}

/// Returns `true` if another member may have what the call did not find.
fn is_absent(error: &Error) -> bool {
    matches!(
        error,
        Error::NoSuchKey { .. } | Error::NoSuchVersion { .. } | Error::NoSuchUpload { .. }
    )
}

impl From<Store> for Pool {
    fn from(store: Store) -> Self {
        Self::from(Arc::new(store))
    }
}

impl Pool {
    /// Returns the members, in the order in which they joined.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the stores that are open.
    pub fn stores(&self) -> impl Iterator<Item = &Store> {
        self.members.iter().filter_map(|member| member.store().ok().map(|store| &**store))
    }

    /// Returns the store, if the pool is a store of its own.
    #[must_use]
    pub fn own_store(&self) -> Option<&Arc<Store>> {
        match (&self.shared, self.members.as_slice()) {
            (None, [only]) => only.store().ok(),
            _ => None,
        }
    }

    /// Returns the directory of the first member, by which messages name the pool.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.members[0].dir
    }

    /// Returns all stores.
    ///
    /// # Errors
    /// [`Error::MemberMissing`].
    pub(crate) fn all_stores(&self) -> Result<Vec<&Store>> {
        self.members.iter().map(|member| member.store().map(|store| &**store)).collect()
    }

    /// Returns the store that answers questions about buckets: a change reaches the last member
    /// last, so that what it has is on all of them.
    pub(crate) fn bucket_store(&self) -> Result<&Store> {
        let open = self.members.iter().rev().find_map(|member| member.store().ok());
        open.map(|store| &**store).ok_or_else(|| self.none_open())
    }

    fn none_open(&self) -> Error {
        let why = "no member of the pool is open".to_owned();
        Error::MemberMissing { dir: self.dir().to_path_buf(), why }
    }

    /// Reads something of a key.
    pub(crate) fn read<'a, T>(
        &'a self,
        bucket: &str,
        key: &str,
        read: impl Fn(&'a Store) -> Result<T>,
    ) -> Result<T> {
        match &self.shared {
            None => read(self.members[0].store()?),
            Some(_) => self.find(bucket, key, |member| member.read(&read)),
        }
    }

    /// Reads something of a key from memory, also while the disk does not respond.
    pub(crate) fn read_cached<'a, T>(
        &'a self,
        bucket: &str,
        key: &str,
        read: impl Fn(&'a Store) -> Result<T>,
    ) -> Result<T> {
        self.find(bucket, key, |member| read(member.store()?))
    }

    /// Calls `read` for the member of a key. While the key's slot is moved, looks at the new member,
    /// the old one, and the new one again: the key may have been moved in between.
    fn find<'a, T>(
        &'a self,
        bucket: &str,
        key: &str,
        read: impl Fn(&'a Member) -> Result<T>,
    ) -> Result<T> {
        let Some(shared) = &self.shared else { return read(&self.members[0]) };
        let routes = shared.routes.read();
        let route = routes.route(bucket, key);
        let to = &self.members[route.to];
        let Some(from) = route.from else { return read(to) };
        let absent = match read(to) {
            Err(error) if is_absent(&error) => error,
            found => return found,
        };
        match read(&self.members[from]) {
            Err(error) if is_absent(&error) => read(to).map_err(|_still_absent| absent),
            found => found,
        }
    }

    /// Looks something up for which absence is no error, like [`Self::read`].
    pub(crate) fn read_optional<'a, T>(
        &'a self,
        bucket: &str,
        key: &str,
        read: impl Fn(&'a Store) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let absent = || Error::NoSuchKey { bucket: bucket.to_owned(), key: key.to_owned() };
        match self.read(bucket, key, |store| read(store)?.ok_or_else(absent)) {
            Ok(found) => Ok(Some(found)),
            Err(Error::NoSuchKey { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Changes something of a key. While the key's slot is moved, first moves the key, so that a
    /// changed key is only in the new member.
    pub(crate) fn write<'a, T>(
        &'a self,
        bucket: &str,
        key: &str,
        write: impl FnOnce(&'a Store) -> Result<T>,
    ) -> Result<T> {
        let Some(shared) = &self.shared else { return write(self.members[0].store()?) };
        let routes = shared.routes.read();
        let route = routes.route(bucket, key);
        let to = &self.members[route.to];
        if let Some(from) = route.from {
            move_key_for_write(&self.members[from], to, bucket, key)?;
        }
        to.write(write)
    }

    /// Returns the queues of events.
    #[must_use]
    pub fn events(&self) -> PoolEvents<'_> {
        PoolEvents::new(&self.members)
    }

    /// Closes all stores. Dropping the pool does the same but ignores failures.
    ///
    /// # Errors
    /// If a write or sync of a member failed, now or earlier.
    pub fn close(mut self) -> Result<()> {
        self.end_upkeep();
        let members = std::mem::take(&mut self.members);
        let mut outcome = Ok(());
        // The threads that shared the members have ended.
        for member in Arc::into_inner(members).unwrap_or_default() {
            // A store that is still read, such as by a copy of it, is closed by its last reader.
            if let Some(store) = member.store.ok().and_then(Arc::into_inner) {
                outcome = outcome.and(store.close());
            }
        }
        outcome
    }

    /// Stops the upkeep, and records the last positions of the members' logs.
    fn end_upkeep(&mut self) {
        let Some(mut upkeep) = self.upkeep.take() else { return };
        upkeep.stop();
        if let Some(shared) = &self.shared {
            // Without the record, an older copy of a member is noticed only if it is older than the
            // previous one.
            drop(shared.record_log_ends(&self.members));
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end_upkeep();
    }
}
