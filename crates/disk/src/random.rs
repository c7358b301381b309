//! Random numbers of the kernel, for names and IDs that must not repeat.

use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::{Error, Op, Result};

/// Returns random bytes (`getrandom(2)`).
///
/// # Errors
/// A failed system call.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    // Up to 256 bytes are returned as a whole.
    const { assert!(N <= 256, "the kernel may return fewer bytes") };
    getrandom(&mut bytes, GetRandomFlags::empty()).map_err(|errno| {
        Error::new(Op::Read, "the random number generator of the kernel", errno)
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_differ_from_call_to_call() {
        assert_ne!(random_bytes::<16>().unwrap(), random_bytes::<16>().unwrap());
    }
}
