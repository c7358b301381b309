//! Files that are served: their descriptions, and where their bytes are.

pub(crate) mod cache_key;
pub(crate) mod coding;
pub(crate) mod content_type;
pub(crate) mod description;
pub(crate) mod frequency;
pub(crate) mod freshness;
pub(crate) mod residency;
pub(crate) mod resident_windows;
pub(crate) mod source;
pub(crate) mod tier;
