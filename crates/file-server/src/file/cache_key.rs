//! Keys of the caches.

use quick_cache::Equivalent;

use crate::file::coding::AcceptedCodings;
use crate::file::description::Meta;

/// A decoded path, and the codings that the client accepts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    accepted: AcceptedCodings,
    pub(crate) path: Box<[u8]>,
}

/// A borrowed [`CacheKey`], for lookups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyRef<'a> {
    pub(crate) accepted: AcceptedCodings,
    pub(crate) path: &'a [u8],
}

impl CacheKey {
    pub(crate) fn of(key: KeyRef<'_>) -> Self {
        Self { accepted: key.accepted, path: key.path.into() }
    }

    pub(crate) fn as_ref(&self) -> KeyRef<'_> {
        KeyRef { accepted: self.accepted, path: &self.path }
    }
}

impl KeyRef<'_> {
    /// Returns the key of a file without encoded forms, which is the same for all clients.
    pub(crate) fn without_codings(self) -> Self {
        Self { accepted: AcceptedCodings::default(), ..self }
    }

    /// Returns the key under which a file is cached that was found for this key.
    pub(crate) fn key_for(self, meta: &Meta) -> CacheKey {
        CacheKey::of(if meta.variant.varies { self } else { self.without_codings() })
    }
}

impl Equivalent<CacheKey> for KeyRef<'_> {
    fn equivalent(&self, key: &CacheKey) -> bool {
        self.accepted == key.accepted && self.path == &*key.path
    }
}
