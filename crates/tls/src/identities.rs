//! Loads the certificates of a server, and reloads them while the server runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::error::{Error, Result};
use crate::identity::{CertificateFiles, Identity};
use crate::selection::Selection;
use crate::validity::Validity;

/// The minimum time between two checks of the files by [`Identities::reload_if_changed`].
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The certificates of a server with their private keys, loaded from files.
///
/// The first certificate is the default. Each other one is used for clients that request one of the
/// DNS names in its subject alternative names (SNI). A name such as `*.example.com` stands for the
/// names with one more label.
#[derive(Debug)]
pub struct Identities {
    files: Vec<CertificateFiles>,
    provider: Arc<CryptoProvider>,
    selection: RwLock<Arc<Selection>>,
    state: Mutex<State>,
}

/// The state of the last load.
#[derive(Debug)]
struct State {
    /// The versions of the files when they were last loaded, successfully or not.
    versions: Vec<Option<FileVersion>>,
    checked_at: Instant,
    validities: Vec<Validity>,
}

/// The metadata that changes when a file is replaced or rewritten.
#[derive(Debug, PartialEq, Eq)]
struct FileVersion {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Identities {
    /// Loads the files.
    ///
    /// # Errors
    /// If `files` is empty, a file cannot be read or parsed, or a private key does not match its
    /// certificate.
    pub fn load(files: Vec<CertificateFiles>) -> Result<Arc<Self>> {
        if files.is_empty() {
            return Err(Error::NoIdentity);
        }
        let provider = Arc::new(ring::default_provider());
        let versions = versions(&files);
        let (selection, validities) = load(&files, &provider)?;
        Ok(Arc::new(Self {
            files,
            provider,
            selection: RwLock::new(Arc::new(selection)),
            state: Mutex::new(State { versions, checked_at: Instant::now(), validities }),
        }))
    }

    /// Loads the files again. New connections use the new certificates; open connections continue
    /// unchanged.
    ///
    /// # Errors
    /// As [`Self::load`]; the previous certificates then stay in use.
    pub fn reload(&self) -> Result<()> {
        let mut state = self.state.lock();
        self.reload_with(&mut state, versions(&self.files))
    }

    /// Loads the files again if one of them was replaced or rewritten since they were last loaded;
    /// returns `true` if they were loaded. Calls within two seconds of the previous check do
    /// nothing.
    ///
    /// # Errors
    /// As [`Self::reload`]. The error is returned once; the files are loaded again when they change
    /// again.
    pub fn reload_if_changed(&self) -> Result<bool> {
        let mut state = self.state.lock();
        if state.checked_at.elapsed() < CHECK_INTERVAL {
            return Ok(false);
        }
        let versions = versions(&self.files);
        if versions == state.versions {
            state.checked_at = Instant::now();
            return Ok(false);
        }
        self.reload_with(&mut state, versions).map(|()| true)
    }

    /// Reads the files; `versions` are those from before the read, so that a change during the read
    /// is noticed later.
    fn reload_with(&self, state: &mut State, versions: Vec<Option<FileVersion>>) -> Result<()> {
        state.checked_at = Instant::now();
        state.versions = versions;
        let (selection, validities) = load(&self.files, &self.provider)?;
        state.validities = validities;
        *self.selection.write() = Arc::new(selection);
        Ok(())
    }

    /// Returns a warning for each certificate that is expired, not valid yet, or expires within a
    /// day. Such a certificate is used nevertheless.
    pub fn warnings(&self) -> Vec<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let state = self.state.lock();
        let rows = self.files.iter().zip(&state.validities);
        rows.filter_map(|(files, validity)| {
            let problem = problem(*validity, now)?;
            Some(format!("the certificate of {} {problem}", files.chain.display()))
        })
        .collect()
    }

    pub(crate) fn provider(&self) -> &Arc<CryptoProvider> {
        &self.provider
    }
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let selection = Arc::clone(&self.selection.read());
        selection.select(hello.server_name(), hello.signature_schemes())
    }
}

fn load(
    files: &[CertificateFiles],
    provider: &CryptoProvider,
) -> Result<(Selection, Vec<Validity>)> {
    let identities: Result<Vec<_>> =
        files.iter().map(|files| Identity::load(files, provider)).collect();
    let identities = identities?;
    let validities = identities.iter().map(|identity| identity.validity).collect();
    Ok((Selection::new(identities), validities))
}

fn versions(files: &[CertificateFiles]) -> Vec<Option<FileVersion>> {
    let paths = files.iter().flat_map(|files| [&files.chain, &files.key]);
    let version = |path| {
        let found = fs::metadata(path).ok()?;
        Some(FileVersion {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    };
    paths.map(version).collect()
}

fn problem(validity: Validity, now: i64) -> Option<String> {
    const HOUR: i64 = 3600;
    let hours = |seconds: i64| seconds / HOUR;
    let Validity { not_before, not_after } = validity;
    match () {
        () if now > not_after => {
            Some(format!("expired {} hours ago; renew it", hours(now - not_after)))
        }
        () if now < not_before => {
            Some(format!("is not valid before {} hours from now", hours(not_before - now)))
        }
        () if not_after - now < 24 * HOUR => {
            Some(format!("expires in {} hours; renew it", hours(not_after - now)))
        }
        () => None,
    }
}
