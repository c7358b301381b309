//! Conversion of errors of transfers to failures. It preserves the errors on which advice depends.

use haul_transfer::{Error, ReadError};

use crate::report::Failure;

/// Returns the failure for an error of a transfer that no single file or object caused.
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
        // Unwrap the error of the store, because advice depends on it.
        ReadError::Store(error) => cannot.because(error),
        error @ ReadError::UnexpectedEnd { .. } => cannot.because(error),
    }
}
