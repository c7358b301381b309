//! Uploads objects, long ones in parts.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStoreExt, PutPayload, WriteMultipart};

use super::Remote;
use crate::error::{Error, Result};

/// The number of requests in flight in a call that makes many.
const CONCURRENT_REQUESTS: usize = 4;

/// The length of each part in a multipart upload, in bytes.
const PART_BYTES: usize = 8 << 20;

/// The maximum length of an object that is stored with one request. A longer one, such as a chunk
/// with a long record, could take longer than the request timeout.
const SINGLE_PUT_BYTES_MAX: usize = 4 * PART_BYTES;

impl Remote {
    /// Stores objects, several at once.
    pub(crate) fn put_all(&self, objects: Vec<(String, Bytes)>) -> Result<()> {
        let puts = stream::iter(objects.into_iter().map(|(name, bytes)| async move {
            let stored = if bytes.len() > SINGLE_PUT_BYTES_MAX {
                self.put_in_parts(&name, bytes).await
            } else {
                self.count(1, bytes.len());
                let (path, payload) = (self.path(&name), PutPayload::from(bytes));
                self.inner.store.put(&path, payload).await.map(drop)
            };
            stored.map_err(|source| self.request_error("store", &name, source))
        }));
        let stored = self.block_on(puts.buffer_unordered(CONCURRENT_REQUESTS).try_collect());
        stored.unwrap_or_else(|| Err(Error::Invalid("the remote store is closed".to_owned())))
    }

    /// Stores a long object with several requests.
    async fn put_in_parts(&self, name: &str, mut bytes: Bytes) -> object_store::Result<()> {
        self.count(bytes.len().div_ceil(PART_BYTES) + 2, bytes.len());
        let upload = self.inner.store.put_multipart(&self.path(name)).await?;
        let mut writer = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        while !bytes.is_empty() {
            writer.put(bytes.split_to(PART_BYTES.min(bytes.len())));
            if let Err(error) = writer.wait_for_capacity(CONCURRENT_REQUESTS).await {
                drop(writer.abort().await);
                return Err(error);
            }
        }
        writer.finish().await.map(drop)
    }

    /// Stores an object whose bytes `next` returns in pieces. The object appears only when all of
    /// them are stored.
    pub(crate) fn put_pieces(
        &self,
        name: &str,
        next: &mut dyn FnMut() -> Result<Option<Bytes>>,
    ) -> Result<()> {
        let path = self.path(name);
        let upload = self.request("store", name, self.inner.store.put_multipart(&path))?;
        let mut writer = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let mut sent = 0;
        loop {
            let piece = match next() {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) => {
                    drop(self.block_on(writer.abort()));
                    return Err(error);
                }
            };
            let parts = (sent + piece.len()) / PART_BYTES - sent / PART_BYTES;
            self.count(parts, piece.len());
            sent += piece.len();
            // The parts are sent by tasks of the runtime.
            let ready = self.block_on(async {
                writer.put(piece);
                writer.wait_for_capacity(CONCURRENT_REQUESTS).await
            });
            if let Some(Err(source)) = ready {
                drop(self.block_on(writer.abort()));
                return Err(self.request_error("store", name, source));
            }
        }
        self.count((sent % PART_BYTES).min(1), 0);
        self.request("store", name, writer.finish()).map(drop)
    }
}
