//! An open store's memory besides its index: reusable buffers, and objects locked in the page
//! cache.

pub(crate) mod buffers;
pub(crate) mod locked;
