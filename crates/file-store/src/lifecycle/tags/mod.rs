//! Rules that are limited to objects with some tags.
//!
//! Tags are stored with an object and not in the index. So a sweep reads those of an object only if
//! nothing but rules with tags would expire it: `read` does so in the order of the log, before the
//! keys are locked. `set` has the tags of an object and their format.

pub(super) mod read;
pub(crate) mod set;
