//! Reads and changes the key file of a command line.

use haul_s3_server::KeyList;

use crate::args::KeyFileArgs;
use crate::report::{Exit, Failure, Result};
use crate::secrets::key_file;

/// The message after a change.
pub(super) const EFFECT: &str = "running servers apply the change within a second";

/// Changes the key file.
pub(super) fn update<T>(
    files: &KeyFileArgs,
    change: impl FnOnce(&mut KeyList) -> Result<T>,
) -> Result<T> {
    key_file::update(&files.keys, &files.sealing_key, change)
}

pub(super) fn read(files: &KeyFileArgs) -> Result<KeyList> {
    key_file::read(&files.keys, &key_file::read_sealing_key(&files.sealing_key)?)
}

/// Returns the failure of an invalid command line.
pub(super) fn usage(failure: Failure) -> Failure {
    failure.exit(Exit::Usage)
}
