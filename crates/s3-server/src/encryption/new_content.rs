//! Encrypts new content: an object, or a part of an upload.

use haul_file_store::Attributes;
use md5::{Digest, Md5};

use crate::encryption::customer::CustomerKey;
use crate::encryption::data_key::{DataKey, failed};
use crate::encryption::envelope::{Envelope, Structure};
use crate::encryption::master::{Master, not_applicable};
use crate::encryption::operator::EncryptionKeys;
use crate::encryption::segments::Sealer;
use crate::errors::S3Result;

/// The keys for new content.
#[derive(Debug, Clone)]
pub(crate) struct NewContent {
    pub(crate) master: Master,
    pub(crate) key: DataKey,
}

impl NewContent {
    /// Creates a data key for a new object or upload.
    pub(crate) fn generate(master: Master) -> S3Result<Self> {
        Ok(Self { master, key: DataKey::generate().map_err(failed)? })
    }

    /// Returns the keys for an upload's parts; `None` if the upload is not encrypted.
    ///
    /// # Errors
    /// If the upload was started with another key.
    pub(crate) fn for_upload(
        keys: Option<&EncryptionKeys>,
        names: (&str, &str),
        attributes: &Attributes,
        customer: Option<&CustomerKey>,
    ) -> S3Result<Option<Self>> {
        let Some(envelope) = Envelope::of(attributes)? else {
            return if customer.is_some() { Err(not_applicable()) } else { Ok(None) };
        };
        let master = Master::for_recipient(&envelope.recipient, keys, customer)?;
        let key = envelope.open(&master, names, 0).ok_or_else(|| master.refusal())?;
        Ok(Some(Self { master, key }))
    }

    /// Starts to encrypt a body, which is the part `part` of an object; 0 for an object in one
    /// piece.
    pub(crate) fn start(&self, part: u16) -> S3Result<Encryption> {
        let hash_key = self.master.hides_md5().then(|| self.key.clone());
        let sealer = Sealer::new(&self.key, part).map_err(failed)?;
        Ok(Encryption { sealer, md5: Md5::new(), hash_key })
    }

    /// Seals the data key for the object or upload with these names.
    pub(crate) fn envelope(
        &self,
        names: (&str, &str),
        structure: Structure,
        stored_bytes: u64,
    ) -> S3Result<Envelope> {
        Envelope::seal(&self.master, &self.key, names, structure, stored_bytes)
    }
}

/// The encryption of one body.
pub(crate) struct Encryption {
    sealer: Sealer,
    md5: Md5,
    /// The key for the `ETag`, if it must not contain the content's MD5.
    hash_key: Option<DataKey>,
}

/// The hashes of an encrypted body.
pub(crate) struct Hashes {
    /// The content's MD5.
    pub(crate) md5: [u8; 16],
    /// The hash for the `ETag`: with the operator's own key, the content's MD5, as S3 and its
    /// clients expect; with any other key, a keyed hash.
    pub(crate) etag: [u8; 16],
}

impl Encryption {
    /// Encrypts the next bytes of the content, and passes encrypted bytes to `write`.
    pub(crate) fn write(
        &mut self,
        bytes: &[u8],
        mut write: impl FnMut(&[u8]) -> S3Result<()>,
    ) -> S3Result<()> {
        self.md5.update(bytes);
        self.sealer.write(bytes, &mut write)
    }

    /// Encrypts the last segment, and returns the body's hashes.
    pub(crate) fn finish(self, mut write: impl FnMut(&[u8]) -> S3Result<()>) -> S3Result<Hashes> {
        self.sealer.finish(&mut write)?;
        let md5: [u8; 16] = self.md5.finalize().into();
        let etag = match &self.hash_key {
            Some(key) => key.etag(&md5).map_err(failed)?,
            None => md5,
        };
        Ok(Hashes { md5, etag })
    }
}
