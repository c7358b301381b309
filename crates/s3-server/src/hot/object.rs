//! A hot object: its content and its prepared response head.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use haul_file_store::{Attributes, LockedObject, Object, ObjectInfo, ObjectLocation, StoredObject};
use haul_http_engine::PreparedHead;
use haul_http1::{Date, HeadWriter};

use crate::answer::rfc2047;
use crate::body::checksum::{Checksum, FULL_OBJECT, TYPE_ATTRIBUTE};
use crate::encryption::envelope::ATTRIBUTE;
use crate::stored::attributes::{self, METADATA_PREFIX, REDIRECT, SENT};
use crate::stored::tags;

/// The bytes in pages that a locked object shares with its neighbours, on average.
const PAGE_BYTES: u64 = 4096;

#[derive(Debug)]
pub(crate) struct HotObject {
    /// The object's location. The entry is valid only while the object is at this location.
    pub(crate) location: ObjectLocation,
    pub(crate) head: PreparedHead,
    pub(crate) content: HotContent,
    pub(crate) info: ObjectInfo,
    /// The attribute with the tags.
    pub(crate) tags: Attributes,
    pub(crate) tag_count: usize,
    pub(crate) checksum: Option<HotChecksum>,
    /// `true` if the object redirects visitors of a website.
    pub(crate) is_redirect: bool,
    /// `true` from the PUT that cached the object until it is read.
    pub(crate) is_unread: AtomicBool,
}

/// A hot object's content, which was verified.
#[derive(Debug)]
pub(crate) enum HotContent {
    /// Copied into the socket.
    Memory(Bytes),
    /// Locked in the page cache, and sent from there without a copy.
    Locked(Arc<LockedObject>),
}

/// A hot object's checksum, which is sent to clients that request it.
#[derive(Debug)]
pub(crate) struct HotChecksum {
    name: &'static str,
    value: String,
    kind: String,
}

impl HotObject {
    /// Returns an object at this location with this content; `None` if it is encrypted.
    pub(crate) fn new(
        location: ObjectLocation,
        object: &Object,
        content: HotContent,
    ) -> Option<Self> {
        Self::with(location, object.info.clone(), &object.attributes, content)
    }

    /// Returns an object that was just stored; `None` if it is encrypted.
    pub(crate) fn stored(
        StoredObject { info, location }: &StoredObject,
        attributes: &Attributes,
        content: Bytes,
    ) -> Option<Self> {
        let object = Self::with(*location, info.clone(), attributes, HotContent::Memory(content))?;
        Some(Self { is_unread: AtomicBool::new(true), ..object })
    }

    fn with(
        location: ObjectLocation,
        info: ObjectInfo,
        attributes: &Attributes,
        content: HotContent,
    ) -> Option<Self> {
        if info.etag.is_encoded() || attributes.get(ATTRIBUTE).is_some() {
            // Encrypted content is decrypted for each request that is allowed to read it.
            return None;
        }
        Some(Self {
            location,
            head: PreparedHead::new(|head| describe(&info, attributes, head)).ok()?,
            content,
            tags: tags::only_tags(attributes),
            tag_count: attributes.tags().len(),
            checksum: HotChecksum::of(attributes),
            is_redirect: attributes.get(REDIRECT).is_some(),
            info,
            is_unread: AtomicBool::new(false),
        })
    }
}

impl HotContent {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Locked(object) => object.bytes(),
        }
    }

    /// Returns the memory that the content takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Locked(object) => object.bytes() + PAGE_BYTES,
        }
    }

    /// Returns `true` if the content occupies space in a removed volume.
    pub(crate) fn is_removed(&self) -> bool {
        matches!(self, Self::Locked(object) if object.is_volume_removed())
    }
}

impl HotChecksum {
    /// Returns the checksum in these attributes.
    fn of(attributes: &Attributes) -> Option<Self> {
        let Checksum { algorithm, value } = Checksum::from_attributes(attributes)?;
        let kind = attributes.get(TYPE_ATTRIBUTE).unwrap_or(FULL_OBJECT).to_owned();
        Some(Self { name: algorithm.header(), value, kind })
    }

    /// Returns the response headers.
    pub(crate) fn fields(&self) -> [(&str, &[u8]); 2] {
        [(self.name, self.value.as_bytes()), (TYPE_ATTRIBUTE, self.kind.as_bytes())]
    }
}

/// Writes the headers that describe an object.
fn describe(info: &ObjectInfo, attributes: &Attributes, head: &mut HeadWriter<'_>) {
    head.field("accept-ranges", b"bytes");
    for (name, value) in attributes.iter() {
        if SENT.contains(&name) {
            head.field(name, value.as_bytes());
        } else if name.starts_with(METADATA_PREFIX) {
            head.field(name, rfc2047::encode(value).as_bytes());
        }
    }
    head.field("content-type", attributes::content_type(attributes, &info.key).as_bytes());
    head.field_parts("etag", &[b"\"", info.etag.to_string().as_bytes(), b"\""]);
    head.date("last-modified", &Date::of(info.modified));
}
