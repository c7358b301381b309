//! Reads ranges from objects in volumes.

use bytes::Bytes;

use crate::error::Result;
use crate::needles::object::Object;
use crate::store::Store;

impl Store {
    /// Reads up to `bytes_max` bytes of an object at `offset`; none at its end. If the object has
    /// more than 128 KiB, reads and verifies only its head and the blocks of 64 KiB (128 KiB if it
    /// is in files) that contain these bytes. To read several ranges, open the object once with
    /// [`Store::open_object`].
    ///
    /// May return fewer bytes of an object in files, like [`Object::read`].
    ///
    /// # Errors
    /// Fails like [`Store::get`].
    pub fn get_range(
        &self,
        bucket: &str,
        key: &str,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Bytes> {
        self.open_object(bucket, key)?.read(offset, bytes_max)
    }

    /// Opens an object to read ranges from it. If the object has more than 128 KiB and is in a
    /// volume, reads only its head. [`Object::read`] then reads the 64 KiB blocks that contain the
    /// requested bytes with one request, and verifies them. Reads other objects, and objects that a
    /// Haul version without block checksums stored, like [`Store::get`].
    ///
    /// While the object is open, its volume's file cannot be reused. On a nearly full disk this can
    /// delay compaction, so drop the object soon after it is read.
    ///
    /// # Errors
    /// Fails like [`Store::get`].
    pub fn open_object(&self, bucket: &str, key: &str) -> Result<Object> {
        self.get_with(bucket, key, |inner, candidate| inner.open_content(candidate, bucket, key))
    }
}
