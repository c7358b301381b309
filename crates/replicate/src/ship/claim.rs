//! Claims the copy for a log: verifies that the copy belongs to this log, and becomes its owner.

use std::sync::Arc;
use std::time::Duration;

use haul_append_log::{Log, Lsn, SEAL_BYTES};
use haul_disk::Disk;

use crate::error::{Error, Result};
use crate::lease::{Clock, SystemClock, Watch};
use crate::manifest::Manifest;
use crate::manifest::object::ManifestObject;
use crate::options::Options;
use crate::owner::OwnedManifest;
use crate::progress::Progress;
use crate::remote::Remote;
use crate::session::Sessions;
use crate::ship::round::Shipper;
use crate::source::Source;

impl<S: Source> Shipper<S> {
    /// Becomes the owner of the copy, or creates an empty one.
    ///
    /// 1. Loads the manifest, and verifies that its session belongs to this directory and that the
    ///    log contains everything that it lists. If the directory was restored, its former owner
    ///    must not have extended the copy since.
    /// 2. Stores a session in the directory, beside the manifest's session. After a crash, the
    ///    directory recognizes the manifest before and after step 3.
    /// 3. Replaces the manifest by a manifest with this session. From here on, no other process
    ///    with another session can replace it without fencing this one, and a process that owned
    ///    the copy before finds that it is fenced.
    ///
    /// If the directory was restored from the copy, this waits until its owner's lease has run out.
    /// Meanwhile `progress` refuses to acknowledge.
    pub(super) fn claim_and_wait(
        source: Arc<S>,
        remote: &Remote,
        options: Options,
        progress: &Arc<Progress>,
    ) -> Result<Self> {
        let _waiting = progress.pause_acknowledgements();
        let (shipper, wait) = Self::claim(source, remote, options, progress)?;
        if progress.pause(wait) {
            return Err(Error::Invalid("the claim was stopped".to_owned()));
        }
        shipper.note_waited()?;
        Ok(shipper)
    }

    /// Records in the directory that the earlier owner's lease has run out.
    pub(crate) fn note_waited(&self) -> Result<()> {
        let disk = self.source.disk();
        match Sessions::load(disk)? {
            Some(sessions) if sessions.copy_end.is_some() => {
                Sessions { copy_end: None, ..sessions }.store(disk)
            }
            _ => Ok(()),
        }
    }

    /// Becomes the owner like [`Self::claim_and_wait`], and returns the time until the caller may
    /// acknowledge.
    pub(crate) fn claim(
        source: Arc<S>,
        remote: &Remote,
        options: Options,
        progress: &Arc<Progress>,
    ) -> Result<(Self, Duration)> {
        loop {
            let claimed = Self::try_claim(Arc::clone(&source), remote, options.clone(), progress);
            // An earlier process's request may have been executed during the claim.
            let is_repeated =
                matches!(claimed, Err(Error::Fenced { .. })) && is_own(source.disk(), remote)?;
            if !is_repeated {
                return claimed;
            }
        }
    }

    fn try_claim(
        source: Arc<S>,
        remote: &Remote,
        options: Options,
        progress: &Arc<Progress>,
    ) -> Result<(Self, Duration)> {
        let sessions = Sessions::load(source.disk())?;
        let object = match ManifestObject::load(remote)? {
            Some(object) => {
                verify_owner(object.current(), sessions)?;
                verify_copy_end(object.current(), sessions)?;
                if let Err(refused) = verify_log(object.current(), source.log()) {
                    pin_copy_end(&*source, sessions)?;
                    return Err(refused);
                }
                verify_kind(object.current(), &*source)?;
                object
            }
            None => ManifestObject::new(remote),
        };
        let mut watch = Watch::default();
        watch.observe(object.current().version(), SystemClock.now());
        let previous = (object.current().generation > 0).then(|| object.current().session);
        let mut manifest = object.current().clone();
        source.kind().clone_into(&mut manifest.kind);
        source.segment_dir().clone_into(&mut manifest.segment_dir);
        if previous.is_none() {
            // Until the first round, the copy is an empty log or store.
            manifest.small_files = source.small_files(&[])?.files;
        }
        let sessions = Sessions::for_claim(sessions, previous)?;
        let object = take_over(source.disk(), object, manifest, sessions, progress)?;
        let wait = watch.until_expiry(SystemClock.now()).filter(|_| sessions.copy_end.is_some());
        Ok((Self::new(source, remote.clone(), options, object), wait.unwrap_or_default()))
    }
}

impl<S: Source> Shipper<S> {
    /// Continues a copy that this process owns, from a log that was rebuilt from the copy.
    pub(crate) fn continue_owned(
        source: Arc<S>,
        remote: &Remote,
        options: Options,
        owned: OwnedManifest,
    ) -> Result<Self> {
        verify_log(&owned.current(), source.log())?;
        verify_kind(&owned.current(), &*source)?;
        Ok(Self::new(source, remote.clone(), options, owned))
    }
}

/// Makes a session the owner of the copy, and keeps its lease, if `progress` has one.
///
/// 1. Stores the session in the directory.
/// 2. Replaces the manifest by `manifest` with the new session.
pub(crate) fn take_over(
    disk: &dyn Disk,
    object: ManifestObject,
    mut manifest: Manifest,
    sessions: Sessions,
    progress: &Arc<Progress>,
) -> Result<OwnedManifest> {
    sessions.store(disk)?;
    manifest.epoch += 1;
    manifest.session = sessions.claimed;
    let lease = progress.lease();
    let mut object = object.with_lease(lease.cloned());
    object.replace(manifest)?;
    let on_error = {
        let progress = Arc::clone(progress);
        move |error: &Error| progress.note_failure(error)
    };
    OwnedManifest::new(object, lease.cloned(), on_error)
}

/// `true` if the manifest's session belongs to this directory.
fn is_own(disk: &dyn Disk, remote: &Remote) -> Result<bool> {
    let (sessions, object) = (Sessions::load(disk)?, ManifestObject::load(remote)?);
    let found = sessions.zip(object);
    Ok(found.is_some_and(|(sessions, object)| sessions.has(object.current().session)))
}

fn verify_owner(manifest: &Manifest, sessions: Option<Sessions>) -> Result<()> {
    match sessions {
        Some(sessions) if sessions.has(manifest.session) => Ok(()),
        Some(_) => Err(Error::Fenced { what: manifest.writer() }),
        None => Err(Error::NotThisLog { what: "this directory never had a copy".to_owned() }),
    }
}

/// Verifies that the copy has the end that this directory may continue.
///
/// The log's length does not show this. Each opening of a restored log adds a record to it, and so
/// do writes before the claim. It may be as long as the copy, but with other records.
fn verify_copy_end(manifest: &Manifest, sessions: Option<Sessions>) -> Result<()> {
    let (found, known) = (manifest.end(), sessions.and_then(|sessions| sessions.copy_end));
    match known {
        Some(known) if known != found => Err(Error::NotThisLog {
            what: format!("it ends at {found}, and this directory has what it had up to {known}"),
        }),
        _ => Ok(()),
    }
}

/// Stores the end of a log that does not continue the copy. The copy never has this end again, so
/// that the directory is rejected even if its log grows until it is as long as the copy.
fn pin_copy_end(source: &impl Source, sessions: Option<Sessions>) -> Result<()> {
    match sessions.filter(|sessions| sessions.copy_end.is_none()) {
        Some(sessions) => {
            let copy_end = Some(source.log().synced());
            Sessions { copy_end, ..sessions }.store(source.disk())
        }
        None => Ok(()),
    }
}

fn verify_kind(manifest: &Manifest, source: &impl Source) -> Result<()> {
    if manifest.kind == source.kind() {
        return Ok(());
    }
    Err(Error::NotThisLog {
        what: format!("it is of a {}, not of a {}", manifest.kind, source.kind()),
    })
}

/// Returns the LSN at which the seal that begins at `seal` ends.
fn after_seal(seal: Lsn) -> Lsn {
    Lsn::new(seal.segment(), seal.offset().saturating_add(SEAL_BYTES))
}

/// Verifies that the log continues the copy: it has the copy's last segment, or has removed it
/// since, and ends at or after the copy's end.
fn verify_log(manifest: &Manifest, log: &Log) -> Result<()> {
    let Some(last) = manifest.segments.last() else { return Ok(()) };
    let (copied, synced) = (manifest.end(), log.synced());
    let segments = log.segments();
    let found = segments.iter().find(|segment| segment.number == last.number);
    let what = match found {
        Some(found) if found.nonce != last.nonce => {
            format!("segment {} has another nonce", last.number)
        }
        // The seal, which the copy of a complete segment includes, is not part of the log's end.
        _ if synced < copied && !(last.is_complete && after_seal(synced) == copied) => {
            format!("the log ends at {synced}, before the copy, which ends at {copied}")
        }
        None if synced < Lsn::new(last.number, 0) => format!("segment {} is missing", last.number),
        _ => return Ok(()),
    };
    Err(Error::NotThisLog { what })
}
