//! The data stored with an object's content: attributes, tags, versions.

pub(crate) mod attributes;
pub(crate) mod tags;
pub(crate) mod versions;
