//! The administrator's key pair.

use std::fmt;

use crate::error::{Error, Result};

/// A key pair for AWS Signature Version 4.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The access key, sent with every request.
    pub access_key: String,
    /// The secret key, which is never sent.
    pub secret_key: String,
}

impl Credentials {
    pub(crate) fn check(&self) -> Result<()> {
        let fail = |why| Err(Error::Credentials { why });
        if self.access_key.is_empty() || self.secret_key.is_empty() {
            return fail("the access key and the secret key must not be empty");
        }
        let odd = |byte: u8| !byte.is_ascii_graphic() || matches!(byte, b'/' | b',' | b'=' | b':');
        if self.access_key.bytes().any(odd) {
            return fail("the access key must not contain spaces or any of / , = :");
        }
        Ok(())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_the_secret_key() {
        let credentials = Credentials { access_key: "key".into(), secret_key: "secret".into() };
        assert!(!format!("{credentials:?}").contains("secret"));
    }
}
