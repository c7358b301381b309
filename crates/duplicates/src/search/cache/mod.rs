//! Adapts the digest cache to a search, which identifies files by their contents (inodes) and stores
//! digests of samples, too.

use std::path::Path;

use haul_bulk_read::digest::{Digest, HashKind};
use haul_bulk_read::{DigestCache, Meta, Tree};

use super::candidates::Candidates;
use super::content_hash::digest_form;
use super::digests::{Key, key_bytes, key_of};
use super::events::Events;
use crate::error::Result;

/// The digests of earlier searches, and those computed in this search.
#[derive(Debug)]
pub(super) struct Cache {
    digests: DigestCache,
    /// The fingerprint of the samples of this search, see [`Plan::fingerprint`](super::plan::Plan).
    samples: u32,
}

impl Cache {
    /// Opens the cache file at `path`. Reports a corrupt file, which is then replaced. A file with
    /// digests of another hash function is reported and not used.
    pub(super) fn open(
        path: &Path,
        hash: HashKind,
        samples: u32,
        events: &dyn Events,
    ) -> Option<Self> {
        let digests = DigestCache::open(path, hash).or_else(|error| {
            let is_usable = !matches!(error, haul_bulk_read::Error::CacheHash { .. });
            events.failed(error.into());
            if is_usable { Ok(DigestCache::empty(hash)) } else { Err(()) }
        });
        digests.ok().map(|digests| Self { digests, samples })
    }

    /// Returns the cached digest of a whole file.
    pub(super) fn full(&self, meta: &Meta) -> Option<Key> {
        let digest = self.digests.digest(meta, digest_form(meta.bytes))?;
        Some(key_of(digest.as_bytes()))
    }

    /// Returns the cached digest of the samples of a file.
    pub(super) fn sample(&self, meta: &Meta) -> Option<Key> {
        let digest = self.digests.sample(meta, digest_form(meta.bytes), self.samples)?;
        Some(key_of(&digest))
    }

    /// Checks whether a file has writers. Must be called before each read of the file.
    pub(super) fn check_writers(&mut self, content: u32, tree: &Tree, candidates: &Candidates) {
        self.digests.check_writers(candidates.file(content), tree);
    }

    pub(super) fn add_sample(&mut self, content: u32, candidates: &Candidates, key: &Key) {
        let form = digest_form(candidates.bytes(content));
        if let Some(digest) = key_bytes(key).first_chunk() {
            self.digests.add_sample(candidates.file(content), form, self.samples, digest);
        }
    }

    pub(super) fn add_full(&mut self, content: u32, candidates: &Candidates, key: &Key) {
        let form = digest_form(candidates.bytes(content));
        if let Some(digest) = Digest::from_bytes(&key_bytes(key)[..self.digests.hash().bytes()]) {
            self.digests.add(candidates.file(content), form, &digest);
        }
    }

    /// Writes the cache file if there are new digests.
    pub(super) fn save(self, path: &Path, tree: &Tree) -> Result<()> {
        Ok(self.digests.save(path, tree)?)
    }
}
