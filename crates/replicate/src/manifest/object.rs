//! The manifest in the remote store: loaded, and replaced only by its owner.

use bytes::Bytes;
use object_store::UpdateVersion;

use super::{Manifest, decode, encode};
use crate::error::{Error, Result};
use crate::names;
use crate::remote::{Remote, Replaced};

/// The manifest as it is in the remote store, and its version there.
#[derive(Debug)]
pub(crate) struct ManifestObject {
    remote: Remote,
    current: Manifest,
    version: Option<UpdateVersion>,
}

impl ManifestObject {
    /// Loads the manifest; `None` if the remote store holds no copy.
    pub(crate) fn load(remote: &Remote) -> Result<Option<Self>> {
        let Some((current, version)) = load(remote)? else { return Ok(None) };
        Ok(Some(Self { remote: remote.clone(), current, version: Some(version) }))
    }

    /// Returns a manifest that does not exist yet. The first [`Self::replace`] creates it.
    pub(crate) fn new(remote: &Remote) -> Self {
        Self { remote: remote.clone(), current: Manifest::default(), version: None }
    }

    /// Returns the manifest that was loaded or stored last.
    pub(crate) fn current(&self) -> &Manifest {
        &self.current
    }

    /// Replaces the manifest by `next`, whose generation and time this sets, if no other process
    /// has replaced it. Calls with the same session must be of the same process.
    ///
    /// 1. Stores `next` on the condition that the object has the known version.
    /// 2. After a conflict, loads the object. With the session of `next` it is of an earlier call
    ///    whose answer was lost: it becomes the current one, and step 1 is repeated. With the
    ///    session and generation of the current manifest it is unchanged, and step 1 is repeated.
    ///    Otherwise another process took over.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another process took over; [`Error::Remote`] if it is unknown whether
    /// the manifest was replaced: a later call finds out.
    pub(crate) fn replace(&mut self, mut next: Manifest) -> Result<()> {
        loop {
            next.generation = self.current.generation + 1;
            let bytes = Bytes::from(encode(&next));
            let replaced = self.remote.replace(names::MANIFEST, bytes, self.version.as_ref())?;
            if let Replaced::Stored(version) = replaced {
                (self.current, self.version) = (next, Some(version));
                return Ok(());
            }
            let Some((found, version)) = load(&self.remote)? else {
                return Err(Error::Fenced { what: "the manifest was removed".to_owned() });
            };
            if found == next {
                (self.current, self.version) = (next, Some(version));
                return Ok(());
            }
            let is_own = found.session == next.session;
            let is_unchanged = found == self.current && self.version.as_ref() != Some(&version);
            if !is_own && !is_unchanged {
                return Err(Error::Fenced { what: found.writer() });
            }
            (self.current, self.version) = (found, Some(version));
        }
    }
}

fn load(remote: &Remote) -> Result<Option<(Manifest, UpdateVersion)>> {
    let Some((bytes, version)) = remote.get(names::MANIFEST)? else { return Ok(None) };
    match decode(&bytes) {
        Ok(manifest) => Ok(Some((manifest, version))),
        Err(what) => {
            let name = remote.full_name(names::MANIFEST);
            Err(Error::Damaged { name, what: what.to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};
    use std::thread;

    use object_store::memory::InMemory;

    use super::*;

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
