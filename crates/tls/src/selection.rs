//! Selects the certificate of a handshake by the server name that the client requests (SNI).

use std::collections::HashMap;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::sign::CertifiedKey;

use crate::identity::Identity;

/// The certificates of a server, by the names for which they are valid.
#[derive(Debug)]
pub(crate) struct Selection {
    /// The first one is the default.
    keys: Vec<Arc<CertifiedKey>>,
    /// The indexes of the certificates of each name, in the configured order.
    by_name: HashMap<String, Vec<usize>>,
}

impl Selection {
    pub(crate) fn new(identities: Vec<Identity>) -> Self {
        let mut by_name: HashMap<_, Vec<_>> = HashMap::new();
        let mut keys = Vec::new();
        for (index, identity) in identities.into_iter().enumerate() {
            for name in identity.names {
                by_name.entry(name).or_default().push(index);
            }
            keys.push(Arc::new(identity.certified_key));
        }
        Self { keys, by_name }
    }

    /// Returns the first certificate for the name whose key supports one of the signature schemes
    /// of the client; without one, the first certificate that supports a scheme.
    pub(crate) fn select(
        &self,
        name: Option<&str>,
        schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        let is_supported = |key: &&Arc<CertifiedKey>| key.key.choose_scheme(schemes).is_some();
        let named = name.and_then(|name| self.by_name(&name.to_ascii_lowercase()));
        let mut candidates = named.into_iter().flatten().map(|index| &self.keys[*index]);
        let found = candidates.find(is_supported);
        found.or_else(|| self.keys.iter().find(is_supported)).cloned()
    }

    fn by_name(&self, name: &str) -> Option<&Vec<usize>> {
        let wildcard = || {
            // A wildcard stands for exactly one label \[RFC9525\], section 6.3.
            let (_label, parent) = name.split_once('.')?;
            self.by_name.get(&format!("*.{parent}"))
        };
        self.by_name.get(name).or_else(wildcard)
    }
}
