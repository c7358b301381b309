//! A standby: follows a copy, and takes it over when its owner's lease has run out.

mod control;
mod directory;
mod takeover;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haul_disk::{Disk, Lock};

use crate::error::{Error, Result};
use crate::follow::Follower;
use crate::lease::{Clock, SystemClock, Watch};
use crate::manifest::object::ManifestObject;
use crate::options::Options;
use crate::owner::OwnedManifest;
use crate::progress::Progress;
use crate::remote::Remote;
use crate::session::Sessions;
use crate::ship::take_over;

pub use control::StandbyControl;
pub use takeover::{Takeover, finish_takeover};

use directory::Directory;

/// The time after which a request for the manifest fails.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// A directory that follows a copy, until it takes it over.
pub struct Standby {
    remote: Remote,
    disk: Arc<dyn Disk>,
    poll_every: Duration,
    clock: Arc<dyn Clock>,
    control: Arc<StandbyControl>,
    follower: Follower,
    /// The manifest that was loaded last; `None` before there was one.
    object: Option<ManifestObject>,
    watch: Watch,
    lock: Lock,
    on_event: Box<dyn Fn(&str) + Send>,
}

impl fmt::Debug for Standby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standby").field("control", &self.control).finish_non_exhaustive()
    }
}

impl Standby {
    /// Makes an empty directory a standby, or continues an earlier one, which polls the manifest at
    /// an interval. Returns `None` if the directory has a log or store, which its owner opens.
    /// Makes no request.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the directory has other files or another process uses it,
    /// [`Error::Disk`].
    pub fn open(
        remote: &Remote,
        disk: &Arc<dyn Disk>,
        poll_every: Duration,
    ) -> Result<Option<Self>> {
        Self::with_clock(remote, disk, poll_every, Arc::new(SystemClock))
    }

    pub(crate) fn with_clock(
        remote: &Remote,
        disk: &Arc<dyn Disk>,
        poll_every: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>> {
        let Directory::Standby(lock) = Directory::of(&**disk)? else { return Ok(None) };
        Ok(Some(Self {
            remote: remote.clone(),
            disk: Arc::clone(disk),
            poll_every,
            clock,
            control: Arc::default(),
            on_event: Box::new(|_| {}),
            follower: Follower::new(remote, disk, true),
            object: None,
            watch: Watch::default(),
            lock,
        }))
    }

    /// Sets a function that receives a description when the standby begins to follow the copy, when
    /// it notices another lease, and when it takes over.
    #[must_use]
    pub fn on_event(self, on_event: impl Fn(&str) + Send + 'static) -> Self {
        Self { on_event: Box::new(on_event), ..self }
    }

    fn report(&self, event: &str, details: &str) {
        if self.control.set_state(event, details) {
            (self.on_event)(event);
        }
    }

    /// Returns the control by which other threads stop the standby, make it take over, and read its
    /// state.
    #[must_use]
    pub fn control(&self) -> Arc<StandbyControl> {
        Arc::clone(&self.control)
    }

    /// Follows the copy until its owner's lease has run out, or a takeover is requested, and takes
    /// the copy over. Then brings the directory to the copy's state, so that the log or store can
    /// be opened. Returns `None` if a stop was requested.
    ///
    /// The lease in `options` begins with the takeover. While `progress` waits for a copy, nothing
    /// is acknowledged by another process.
    ///
    /// # Errors
    /// [`Error::NotThisLog`] if the directory has another log, or more of this log than the copy;
    /// [`Error::Invalid`] for options out of range; [`Error::Disk`]. Remote store errors are
    /// retried.
    ///
    /// # Durability
    /// The log or store in the directory survives a power cut when this returns.
    pub fn run(mut self, progress: &Arc<Progress>, options: &Options) -> Result<Option<Takeover>> {
        options.check()?;
        progress.set_lease(options.lease, &self.clock);
        loop {
            if self.control.is_stopping() {
                return Ok(None);
            }
            match self.step(progress) {
                Ok(Some(owned)) => return self.complete(owned, progress).map(Some),
                Ok(None) => {}
                Err(error @ (Error::NotThisLog { .. } | Error::Disk(_))) => return Err(error),
                // Another standby has won.
                Err(Error::Fenced { .. }) => continue,
                Err(error) => self.control.note_error(&error),
            }
            let expiry = self.until_expiry();
            self.control.wait(expiry.map_or(self.poll_every, |left| left.min(self.poll_every)));
        }
    }

    /// Returns the time until the owner's lease has certainly run out; `None` if it has none.
    pub(crate) fn until_expiry(&self) -> Option<Duration> {
        self.watch.until_expiry(self.clock.now())
    }

    /// Loads the manifest, and takes the copy over if that is due. Otherwise fetches new objects.
    pub(crate) fn step(&mut self, progress: &Arc<Progress>) -> Result<Option<OwnedManifest>> {
        self.poll()?;
        let sessions = Sessions::load(&*self.disk)?;
        let Some(object) = &self.object else { return Ok(None) };
        let current = object.current();
        let is_own = sessions.is_some_and(|sessions| sessions.has(current.session));
        let is_due = self.until_expiry() == Some(Duration::ZERO);
        if is_own || is_due || self.control.is_takeover_requested() {
            let claim = Sessions::for_claim(sessions, Some(current.session))?;
            let previous = is_own.then_some(current.session);
            let (object, manifest) = (object.clone(), current.clone());
            self.report("taking over the copy", "");
            let claim = Sessions { previous, ..claim };
            return take_over(&*self.disk, object, manifest, claim, progress).map(Some);
        }
        self.follow()?;
        Ok(None)
    }

    /// Loads the manifest if it was replaced.
    fn poll(&mut self) -> Result<()> {
        match &mut self.object {
            Some(object) => drop(object.reload()?),
            None => {
                let remote = self.remote.with_timeout(REQUEST_TIME_MAX);
                self.object = ManifestObject::load(&remote)?;
            }
        }
        let now = self.clock.now();
        match &self.object {
            Some(object) => self.watch.observe(object.current().version(), now),
            None => self.report("the remote store has no copy yet", ""),
        }
        Ok(())
    }

    /// Fetches the objects that the directory lacks. Polls meanwhile, and stops when the manifest
    /// is too old.
    fn follow(&mut self) -> Result<()> {
        let Some(object) = &self.object else { return Ok(()) };
        let manifest = object.current().clone();
        let (clock, control) = (Arc::clone(&self.clock), Arc::clone(&self.control));
        let (watch, mut polled) = (&mut self.watch, clock.now());
        let mut observed = object.clone();
        let mut is_interrupted = false;
        let advanced = self.follower.advance(&manifest, &mut || {
            if clock.now().saturating_sub(polled) >= self.poll_every {
                polled = clock.now();
                // An error means that nothing was observed.
                drop(observed.reload());
                watch.observe(observed.current().version(), clock.now());
            }
            let is_due = watch.until_expiry(clock.now()) == Some(Duration::ZERO);
            if is_due || control.is_stopping() || control.is_takeover_requested() {
                is_interrupted = true;
                return Err(Error::Invalid("interrupted".to_owned()));
            }
            Ok(())
        });
        let is_newer = observed.current().generation > manifest.generation;
        self.object = Some(observed);
        match advanced {
            Err(_) if is_interrupted => return Ok(()),
            // An object may have disappeared because the manifest was replaced.
            Err(Error::Damaged { .. }) if is_newer || self.has_changed()? => return Ok(()),
            advanced => advanced?,
        }
        let lease = match manifest.version().lease {
            Some(lease) => format!("its owner has a lease of {} s", lease.as_secs_f64()),
            None => "its owner has no lease (--lease), so this standby only takes over on request"
                .to_owned(),
        };
        let end = manifest.end();
        self.report(
            &format!("following the copy; {lease}"),
            &format!("; it ends at position {end} of the log"),
        );
        Ok(())
    }

    /// Loads the manifest, and returns `true` if it was replaced.
    fn has_changed(&mut self) -> Result<bool> {
        let Some(object) = &mut self.object else { return Ok(false) };
        let has_changed = object.reload()?;
        self.watch.observe(object.current().version(), self.clock.now());
        Ok(has_changed)
    }
}
