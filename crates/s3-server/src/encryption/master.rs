//! The key that seals an object's data key: a customer key, or an operator key.

use std::sync::Arc;

use crate::encryption::customer::CustomerKey;
use crate::encryption::data_key::KEY_BYTES;
use crate::encryption::operator::{EncryptionKey, EncryptionKeys};
use crate::errors::{S3Error, S3ErrorCode, S3Result, refuse};

/// The holder of the key that seals a data key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Recipient {
    Customer,
    /// The operator; the string is the key's ID.
    Operator(String),
    /// The operator; the string is the ID of a key named in the request.
    Named(String),
}

/// The key that seals data keys.
#[derive(Debug, Clone)]
pub(crate) enum Master {
    Customer(CustomerKey),
    Operator(Arc<EncryptionKey>),
    /// An operator key named in the request.
    Named(Arc<EncryptionKey>),
}

impl Master {
    /// Returns the operator's key for new objects.
    pub(crate) fn operator_key(keys: Option<&EncryptionKeys>) -> S3Result<Self> {
        let newest = keys.and_then(|keys| keys.newest(None));
        newest.map(Self::Operator).ok_or_else(|| {
            let message = "This server has no encryption key of its own: its operator must set \
                           --encryption-key, with a key without a name";
            refuse(S3ErrorCode::NotImplemented, message)
        })
    }

    /// Returns the newest operator key with this name.
    pub(crate) fn named(keys: Option<&EncryptionKeys>, name: &str) -> S3Result<Self> {
        let newest = keys.and_then(|keys| keys.newest(Some(name)));
        newest.map(Self::Named).ok_or_else(|| {
            let message = format!(
                "This server has no encryption key {name:?}: its operator must add it to the file \
                 of --encryption-key"
            );
            refuse(S3ErrorCode::KmsNotFound, message)
        })
    }

    /// Returns the key that belongs to an envelope's recipient.
    pub(crate) fn for_recipient(
        recipient: &Recipient,
        keys: Option<&EncryptionKeys>,
        customer: Option<&CustomerKey>,
    ) -> S3Result<Self> {
        match (recipient, customer) {
            (Recipient::Customer, Some(key)) => Ok(Self::Customer(key.clone())),
            (Recipient::Customer, None) => {
                let message = "The object is encrypted with a key of the customer: the request \
                               needs the key in its headers";
                Err(refuse(S3ErrorCode::InvalidRequest, message))
            }
            (Recipient::Operator(_) | Recipient::Named(_), Some(_)) => Err(not_applicable()),
            (Recipient::Operator(id), None) => find(keys, id).map(Self::Operator),
            (Recipient::Named(id), None) => find(keys, id).map(Self::Named),
        }
    }

    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        match self {
            Self::Customer(key) => &key.bytes,
            Self::Operator(key) | Self::Named(key) => &key.bytes,
        }
    }

    /// Returns `true` if the `ETag` must not be the MD5 of the object's content, as in S3.
    pub(super) fn hides_md5(&self) -> bool {
        !matches!(self, Self::Operator(_))
    }

    /// Returns `true` if both are the same kind of key, so that objects are encrypted in the same
    /// way.
    pub(crate) fn has_same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    pub(super) fn recipient(&self) -> Recipient {
        match self {
            Self::Customer(_) => Recipient::Customer,
            Self::Operator(key) => Recipient::Operator(key.id().to_owned()),
            Self::Named(key) => Recipient::Named(key.id().to_owned()),
        }
    }

    /// Returns the error for an envelope that this key cannot open.
    pub(crate) fn refusal(&self) -> S3Error {
        match self {
            Self::Customer(_) => {
                let message = "The key in the request is not the one with which the object was \
                               encrypted";
                refuse(S3ErrorCode::InvalidRequest, message)
            }
            Self::Operator(_) | Self::Named(_) => {
                let message = "The data key of the object is damaged, or that of another object";
                refuse(S3ErrorCode::InternalError, message)
            }
        }
    }
}

/// Returns the error for a customer key in a request for an object that needs none.
pub(crate) fn not_applicable() -> S3Error {
    let message = "The object is not encrypted with a key of the customer";
    refuse(S3ErrorCode::InvalidRequest, message)
}

/// Returns the operator key with this ID.
fn find(keys: Option<&EncryptionKeys>, id: &str) -> S3Result<Arc<EncryptionKey>> {
    keys.and_then(|keys| keys.find(id)).ok_or_else(|| {
        let message = format!(
            "The object is encrypted with the key {id} of the operator, which the file of \
             --encryption-key does not have"
        );
        refuse(S3ErrorCode::InternalError, message)
    })
}
