//! The copy of a store elsewhere: the confirmation for which writers wait, and the parts of the
//! store that are copied.

pub(crate) mod checkpoint;
pub(crate) mod confirmation;
pub(crate) mod interface;
pub(crate) mod source;
