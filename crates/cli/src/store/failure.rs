//! Converts errors of transfers to failures. An error of the store stays the cause of its failure,
//! because the module `advice` selects advice by the cause.

use haul_transfer::{Error, ReadError};

use crate::report::Failure;

/// Returns the failure for an error that no single file or object of a transfer caused.
pub(super) fn transfer_failed(error: Error) -> Failure {
    match error {
        Error::Thread(error) => Failure::new("cannot start a thread").because(error),
        error => Failure::new("cannot transfer").because(error),
    }
}

/// Returns the failure for an object that cannot be read.
pub(super) fn cannot_read(name: &str, error: ReadError) -> Failure {
    let cannot = Failure::new(format!("cannot read {name}"));
    match error {
        // The error of the store becomes the cause, because the module `advice` looks for it there.
        ReadError::Store(error) => cannot.because(error),
        error @ (ReadError::Encoded | ReadError::UnexpectedEnd { .. }) => cannot.because(error),
    }
}
