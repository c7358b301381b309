//! Loads a certificate chain with its private key.

use std::path::{Path, PathBuf};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error as TlsError, InconsistentKeys};
use webpki::EndEntityCert;

use crate::error::{Error, Result};
use crate::validity::{Validity, validity};

/// The PEM files of a certificate chain and its private key. Both may be the same file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate of the server, followed by the intermediate certificates.
    pub chain: PathBuf,
    /// The private key of the certificate of the server, without a passphrase.
    pub key: PathBuf,
}

/// A certificate chain with its private key.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) certified_key: CertifiedKey,
    /// The DNS names of the certificate, in lower case; a wildcard name begins with `*.`.
    pub(crate) names: Vec<String>,
    pub(crate) validity: Validity,
}

impl Identity {
    /// Reads and checks both files.
    pub(crate) fn load(files: &CertificateFiles, provider: &CryptoProvider) -> Result<Self> {
        let CertificateFiles { chain: path, key: key_path } = files;
        let text = read(path, "certificate")?;
        let chain = CertificateDer::pem_slice_iter(&text)
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|error| not_pem(path, &error))?;
        let Some(first) = chain.first() else {
            return Err(Error::NoCertificate { path: path.clone() });
        };
        let malformed = |reason: String| Error::Certificate { path: path.clone(), reason };
        let certificate =
            EndEntityCert::try_from(first).map_err(|error| malformed(error.to_string()))?;
        let names = certificate.valid_dns_names().map(str::to_ascii_lowercase).collect();
        let validity = validity(first)
            .ok_or_else(|| malformed("the validity period is malformed".to_owned()))?;
        let key = private_key(key_path)?;
        let certified_key =
            CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
                TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    Error::Mismatch { chain: path.clone(), key: key_path.clone() }
                }
                error => Error::PrivateKey { path: key_path.clone(), reason: error.to_string() },
            })?;
        Ok(Self { certified_key, names, validity })
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let text = read(path, "private key")?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => Error::NoPrivateKey { path: path.to_owned() },
        error => not_pem(path, &error),
    })
}

fn read(path: &Path, content: &'static str) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|source| Error::Read { content, path: path.to_owned(), source })
}

fn not_pem(path: &Path, error: &pem::Error) -> Error {
    Error::Pem { path: path.to_owned(), reason: error.to_string() }
}
