//! Moving the keys of slots from one member to another, while all are read and written.
//!
//! A slot is moved in three steps. The table names the new and the old member (1); each key is moved
//! by itself, first if it is written and otherwise in the background (2); the table names only the
//! new member (3). Reads look at the new member and then at the old one.

pub(crate) mod plan;
pub(crate) mod run;

use haul_file_store::{MovedKey, Result};

use crate::member::Member;

/// Moves a key to the new member of its slot, unless it is there. A move of a big object may take
/// long, so that it is not counted as a call.
///
/// # Errors
/// Fails like [`haul_file_store::Store::move_key`];
/// [`haul_file_store::Error::MemberMissing`].
pub(crate) fn move_key(from: &Member, to: &Member, bucket: &str, key: &str) -> Result<MovedKey> {
    from.store()?.move_key(to.store()?, bucket, key)
}

/// Moves a key like [`move_key`], for a call that then changes it in the new member.
///
/// # Errors
/// Fails like [`move_key`]; [`haul_file_store::Error::MemberStalled`].
pub(crate) fn move_key_for_write(
    from: &Member,
    to: &Member,
    bucket: &str,
    key: &str,
) -> Result<MovedKey> {
    let _call = from.begin_move(to)?;
    move_key(from, to, bucket, key)
}
