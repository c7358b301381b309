//! Moving the keys of slots from one member to another, while all are read and written.
//!
//! A slot is moved in three steps. The table names the new and the old member (1); each key is moved
//! by itself, first if it is written and otherwise in the background (2); the table names only the
//! new member (3). Reads look at the new member and then at the old one.

pub(crate) mod plan;
pub(crate) mod run;

use haul_file_store::{MovedKey, Result};

use crate::member::Member;

/// Moves a key to the new member of its slot, unless it is there.
///
/// # Errors
/// Fails like [`haul_file_store::Store::move_key`];
/// [`haul_file_store::Error::MemberMissing`].
pub(crate) fn move_key(
    members: &[Member],
    from: usize,
    to: usize,
    bucket: &str,
    key: &str,
) -> Result<MovedKey> {
    members[from].store()?.move_key(members[to].store()?, bucket, key)
}
