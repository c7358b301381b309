//! Reads objects in any bucket, including internal ones.

use crate::counters::Counters;
use crate::error::Result;
use crate::index::addresses::Candidate;
use crate::needles::lookup::Read;
use crate::needles::object::{Content, Object};
use crate::object::Attributes;
use crate::store::Store;

impl Store {
    /// Returns an object like [`Store::get`], from any bucket.
    pub(crate) fn get_stored(&self, bucket: &str, key: &str) -> Result<Object> {
        let inner = &self.inner;
        let read = |candidate| inner.read_content(candidate, bucket, key);
        self.open_stored(bucket, key, read)
    }

    /// Returns an object like [`Store::head`], from any bucket.
    pub(crate) fn head_stored(&self, bucket: &str, key: &str) -> Result<Object> {
        let inner = &self.inner;
        Counters::count(&inner.counters.local().gets);
        let read = |candidate| inner.read_head(candidate, bucket, key);
        let (entry, attributes) =
            inner.look_up_in(inner.keyspace.index.read(), bucket, key, read)?;
        let info = entry.info(key);
        Ok(Object { info, attributes, content: Content::Head(entry.files) })
    }

    /// Returns an object like [`Store::head_cached`], from any bucket.
    pub(crate) fn head_stored_cached(&self, bucket: &str, key: &str) -> Result<Option<Object>> {
        let inner = &self.inner;
        let read = |candidate| inner.read_head_cached(candidate, bucket, key);
        let found = inner.look_up_cached_in(inner.keyspace.index.read(), bucket, key, read)?;
        Ok(found.map(|(entry, attributes)| {
            let info = entry.info(key);
            Object { info, attributes, content: Content::Head(entry.files) }
        }))
    }

    fn open_stored(
        &self,
        bucket: &str,
        key: &str,
        read: impl Fn(Candidate) -> Result<Read<(Attributes, Content)>>,
    ) -> Result<Object> {
        let inner = &self.inner;
        Counters::count(&inner.counters.local().gets);
        loop {
            let index = inner.keyspace.index.read();
            let (entry, opened) = inner.look_up_in(index, bucket, key, &read)?;
            if let Some(object) = inner.object(bucket, key, entry, opened)? {
                return Ok(object);
            }
        }
    }
}
