//! What is stored beside the content of an object: attributes, tags, versions.

pub(crate) mod attributes;
pub(crate) mod tags;
pub(crate) mod versions;
