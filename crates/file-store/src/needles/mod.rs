//! The needles of an open store: how they are found, read, appended and applied to the index.

pub(crate) mod append;
pub(crate) mod apply;
pub(crate) mod block_data;
pub(crate) mod lookup;
pub(crate) mod object;
pub(crate) mod read;
pub(crate) mod stored;
pub(crate) mod written;
