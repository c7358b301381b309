//! The manifest in the remote store: loaded, and replaced only by its owner.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::UpdateVersion;

use super::{Manifest, decode, encode, names};
use crate::error::{Error, Result};
use crate::lease::Lease;
use crate::remote::{Fetched, Remote, Replaced};

/// The manifest as it is in the remote store, and its version there.
#[derive(Debug, Clone)]
pub(crate) struct ManifestObject {
    remote: Remote,
    current: Manifest,
    version: Option<UpdateVersion>,
    /// This process's lease, which each replacement renews.
    lease: Option<Arc<Lease>>,
    /// The time before the first request that was made after the last response.
    unanswered_since: Option<Duration>,
}

impl ManifestObject {
    /// Loads the manifest; `None` if the remote store holds no copy.
    pub(crate) fn load(remote: &Remote) -> Result<Option<Self>> {
        let Some((current, version)) = load(remote)? else { return Ok(None) };
        Ok(Some(Self { current, version: Some(version), ..Self::new(remote) }))
    }

    /// Returns a manifest that does not exist yet. The first [`Self::replace`] creates it.
    pub(crate) fn new(remote: &Remote) -> Self {
        let (remote, current) = (remote.clone(), Manifest::default());
        Self { remote, current, version: None, lease: None, unanswered_since: None }
    }

    /// Sets the lease that the owner promises in each manifest, and that each replacement renews.
    /// Requests fail when they take longer than the lease.
    #[must_use]
    pub(crate) fn with_lease(self, lease: Option<Arc<Lease>>) -> Self {
        let limited = lease.as_ref().map(|lease| self.remote.with_timeout(lease.length()));
        Self { remote: limited.unwrap_or(self.remote), lease, ..self }
    }

    /// Loads the manifest again, unless it has the version that is known. Returns `true` if it was
    /// replaced.
    pub(crate) fn reload(&mut self) -> Result<bool> {
        let tag = self.version.as_ref().and_then(|version| version.e_tag.as_deref());
        match self.remote.get_unless(names::MANIFEST, tag)? {
            Fetched::Unchanged => Ok(false),
            Fetched::Missing => Err(Error::NoCopy { name: self.remote.full_name(names::MANIFEST) }),
            Fetched::Object(bytes, version) => {
                self.current = decoded(&self.remote, &bytes)?;
                self.version = Some(version);
                Ok(true)
            }
        }
    }

    /// Returns the manifest that was loaded or stored last.
    pub(crate) fn current(&self) -> &Manifest {
        &self.current
    }

    /// Returns the manifest like [`Self::current`], for a guard of a lock.
    pub(crate) fn current_mut(&mut self) -> &mut Manifest {
        &mut self.current
    }

    /// Replaces the manifest by `next`, whose generation and time this sets, if no other process
    /// has replaced it. Only one process may make calls with the same session.
    ///
    /// 1. Stores `next` on the condition that the object has the known version.
    /// 2. After a conflict, loads the object. If it has the session of `next`, an earlier call
    ///    whose response was lost stored it: it becomes the current manifest, and step 1 is
    ///    repeated. If it has the current manifest's session and generation, it is unchanged, and
    ///    step 1 is repeated. Otherwise another process took over.
    ///
    /// The lease is renewed from the time before the request that stored the manifest. If it is
    /// unknown which request stored it, the first unanswered one counts.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another process took over; [`Error::Remote`] if it is unknown whether
    /// the manifest was replaced: a later call determines this.
    pub(crate) fn replace(&mut self, next: Manifest) -> Result<()> {
        self.replace_unless(next, |found, next| found == next)
    }

    /// Replaces the manifest like [`Self::replace`], unless an earlier call stored one that already
    /// suffices.
    fn replace_unless(
        &mut self,
        mut next: Manifest,
        suffices: fn(&Manifest, &Manifest) -> bool,
    ) -> Result<()> {
        next.lease_ms = self
            .lease
            .as_ref()
            .map_or(0, |lease| u64::try_from(lease.length().as_millis()).unwrap_or(u64::MAX));
        loop {
            next.generation = self.current.generation + 1;
            let start = self.lease.as_ref().map_or(Duration::ZERO, |lease| lease.now());
            let first = *self.unanswered_since.get_or_insert(start);
            let bytes = Bytes::from(encode(&next));
            let replaced = self.remote.replace(names::MANIFEST, bytes, self.version.as_ref())?;
            if let Replaced::Stored(version) = replaced {
                self.confirm(next, version, start);
                return Ok(());
            }
            let Some((found, version)) = load(&self.remote)? else {
                return Err(Error::Fenced { what: "the manifest was removed".to_owned() });
            };
            if found == self.current {
                // Nothing was stored: either the version has changed, or there was no conflict.
                if self.version.as_ref() == Some(&version) {
                    return Err(self.remote.condition_error("replace", names::MANIFEST));
                }
                self.version = Some(version);
            } else if found.session == next.session {
                let is_enough = suffices(&found, &next);
                self.confirm(found, version, first);
                if is_enough {
                    return Ok(());
                }
            } else {
                return Err(Error::Fenced { what: found.writer() });
            }
        }
    }

    /// Replaces the manifest by a copy with the same content, which renews the lease. An earlier
    /// replacement whose response was lost renews it, too, and is not undone.
    ///
    /// # Errors
    /// Like [`Self::replace`].
    pub(crate) fn renew(&mut self) -> Result<()> {
        let same = self.current.clone();
        self.replace_unless(same, |_, _| true)
    }

    /// Records that a request sent after the time `start` stored `manifest`.
    fn confirm(&mut self, manifest: Manifest, version: UpdateVersion, start: Duration) {
        (self.current, self.version) = (manifest, Some(version));
        self.unanswered_since = None;
        if let Some(lease) = &self.lease {
            lease.renew(start);
        }
    }
}

fn load(remote: &Remote) -> Result<Option<(Manifest, UpdateVersion)>> {
    let Some((bytes, version)) = remote.get(names::MANIFEST)? else { return Ok(None) };
    Ok(Some((decoded(remote, &bytes)?, version)))
}

fn decoded(remote: &Remote, bytes: &[u8]) -> Result<Manifest> {
    decode(bytes).map_err(|what| {
        let name = remote.full_name(names::MANIFEST);
        Error::Damaged { name, what: what.into_owned() }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use std::sync::atomic::{AtomicU64, Ordering};

    use object_store::memory::InMemory;

    use super::*;
    use crate::lease::Clock;

    /// A clock that advances by a second with each reading.
    #[derive(Debug, Default)]
    struct Ticks(AtomicU64);

    impl Clock for Ticks {
        fn now(&self) -> Duration {
            Duration::from_secs(self.0.fetch_add(1, Ordering::Relaxed))
        }
    }

    /// If either of two equal requests may have stored the manifest, it may be the first one, from
    /// whose time a standby counts.
    #[test]
    fn lease_counts_from_the_first_request_that_was_not_answered() {
        let remote = Remote::new(Arc::new(InMemory::new()), "copy").unwrap();
        let lease = Arc::new(Lease::new(Duration::from_secs(10), Arc::<Ticks>::default()));
        let mut object = ManifestObject::new(&remote).with_lease(Some(Arc::clone(&lease)));
        object.replace(Manifest::default()).unwrap();
        // Renewed at 0, and read at 1.
        assert_eq!(lease.remaining(), Duration::from_secs(9));
        // The request at 2 stores the manifest, and its answer is lost.
        let start = lease.now();
        object.unanswered_since = Some(start);
        let mut other = ManifestObject::load(&remote).unwrap().unwrap();
        let stored = Manifest { lease_ms: 10_000, ..object.current().clone() };
        other.replace(Manifest { session: 0, ..stored.clone() }).unwrap();
        let mut same = other.current().clone();
        same.lease_ms = 10_000;
        remote.put_all(vec![(names::MANIFEST.to_owned(), encode(&same).into())]).unwrap();
        // The request at 3 finds it. The lease is read at 4, and runs out at 12.
        object.replace(stored).unwrap();
        assert_eq!(lease.remaining(), Duration::from_secs(8));
    }

    /// A renewal must not store the earlier manifest again: that would shorten the copy.
    #[test]
    fn renewal_keeps_a_replacement_whose_answer_was_lost() {
        let remote = Remote::new(Arc::new(InMemory::new()), "copy").unwrap();
        let mut object = ManifestObject::new(&remote);
        object.replace(Manifest { session: 1, ..Manifest::default() }).unwrap();
        let mut unanswered = object.clone();
        let longer = Manifest { epoch: 7, ..object.current().clone() };
        unanswered.replace(longer.clone()).unwrap();
        object.renew().unwrap();
        let stored = ManifestObject::load(&remote).unwrap().unwrap();
        assert_eq!((stored.current().epoch, object.current().epoch), (7, 7));
        object.renew().unwrap();
        assert_eq!(object.current().generation, stored.current().generation + 1);
    }

    /// Two processes load the same manifest and replace it at the same time.
    #[test]
    fn one_of_two_concurrent_replacements_wins() {
        let remote = Remote::new(Arc::new(InMemory::new()), "copy").unwrap();
        let mut first = ManifestObject::new(&remote);
        first.replace(Manifest::default()).unwrap();
        let barrier = Barrier::new(2);
        let mut wins = [0_u32; 2];
        for round in 0..10_000_u128 {
            let replace = |writer: u128| {
                let mut object = ManifestObject::load(&remote).unwrap().unwrap();
                let session = 2 * round + writer + 1;
                let next = Manifest { session, ..object.current().clone() };
                barrier.wait();
                object.replace(next)
            };
            let outcomes: [Result<()>; 2] = thread::scope(|scope| {
                let other = scope.spawn(|| replace(1));
                let own = replace(0);
                [own, other.join().unwrap()]
            });
            let session = ManifestObject::load(&remote).unwrap().unwrap().current().session;
            for (writer, outcome) in (0..).zip(&outcomes) {
                let has_won = session == 2 * round + writer + 1;
                let index = usize::try_from(writer).unwrap();
                wins[index] += u32::from(has_won);
                match outcome {
                    Ok(()) => assert!(has_won, "round {round}: {outcomes:?}"),
                    Err(error) => {
                        assert!(!has_won && error.is_final(), "round {round}: {outcomes:?}");
                    }
                }
            }
        }
        assert_eq!(wins[0] + wins[1], 10_000);
        assert!(wins[0] > 0 && wins[1] > 0, "{wins:?}");
    }
}
