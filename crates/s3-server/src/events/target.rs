//! The targets of events, and their counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use haul_file_store::EventQueues;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::events::fields::RULE;
use crate::events::listeners::Listeners;
use crate::events::lost::LostEvents;
use crate::events::options::EventTarget;
use crate::events::sender::Sender;
use crate::log_limit::LogLimit;

/// The queue of the clients that listen. No target has its name.
pub(super) const LISTENERS: &str = "listeners";

/// A target and its counts since the start of the server.
#[derive(Debug)]
pub(crate) struct Target {
    name: Arc<str>,
    /// The name of the field with the ID of the rule that sends an event to this target.
    rule_field: String,
    pub(crate) settings: EventTarget,
    pub(crate) delivered: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) failures: AtomicU64,
    state: Mutex<TargetState>,
    logged_drops: LogLimit<&'static str>,
}

#[derive(Debug, Default)]
struct TargetState {
    /// The last error, since the last success.
    error: Option<String>,
    failing_since: Option<SystemTime>,
    retry: Retry,
}

/// A retry that an operator asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Retry {
    #[default]
    None,
    /// The next attempt is made at once.
    Requested,
    /// The attempt is being made.
    Started,
}

/// A target's state, for operators.
#[derive(Debug, Clone)]
pub(crate) struct TargetReport {
    pub(crate) name: Arc<str>,
    pub(crate) url: String,
    pub(crate) timeout: Duration,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) failures: u64,
    pub(crate) error: Option<String>,
    pub(crate) failing_since: Option<SystemTime>,
    /// `true` from the request for a retry to the end of the attempt.
    pub(crate) is_retrying: bool,
}

impl Target {
    /// Returns the name, which is also that of the queue.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn rule_field(&self) -> &str {
        &self.rule_field
    }

    pub(crate) fn succeeded(&self, events: usize) {
        self.delivered.fetch_add(events as u64, Relaxed);
        let mut state = self.state.lock();
        state.retry = Retry::None;
        if state.error.take().is_some() {
            state.failing_since = None;
            tracing::info!(queue = &*self.name, "the event target accepts events again");
        }
    }

    /// Records a failed attempt. The first of a series is logged.
    pub(crate) fn failed(&self, why: &str) {
        self.failures.fetch_add(1, Relaxed);
        let mut state = self.state.lock();
        // An attempt that began before the request does not fulfil it.
        if state.retry == Retry::Started {
            state.retry = Retry::None;
        }
        if state.error.replace(why.to_owned()).is_none() {
            state.failing_since = Some(SystemTime::now());
            tracing::warn!(queue = &*self.name, why, "events cannot be delivered, and are queued");
        }
    }

    /// Counts events that were dropped for a reason, and logs this from time to time.
    pub(crate) fn dropped(&self, events: u64, why: &'static str, detail: &str) {
        let total = self.dropped.fetch_add(events, Relaxed) + events;
        if self.logged_drops.permits(why, Instant::now()) {
            let queue = &*self.name;
            tracing::error!(queue, events, total, why, detail, "the oldest events were dropped");
        }
    }

    /// Makes the next attempt follow at once, if the last one has failed.
    pub(crate) fn retry_now(&self) {
        let mut state = self.state.lock();
        if state.error.is_some() {
            state.retry = Retry::Requested;
        }
    }

    /// Returns `true` if the next attempt is to be made at once; it has then started.
    pub(crate) fn takes_retry(&self) -> bool {
        let mut state = self.state.lock();
        let is_requested = state.retry == Retry::Requested;
        if is_requested {
            state.retry = Retry::Started;
        }
        is_requested
    }

    pub(crate) fn report(&self) -> TargetReport {
        let state = self.state.lock();
        TargetReport {
            name: Arc::clone(&self.name),
            url: self.settings.url.clone(),
            timeout: self.settings.timeout,
            delivered: self.delivered.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            failures: self.failures.load(Relaxed),
            error: state.error.clone(),
            failing_since: state.failing_since,
            is_retrying: state.retry != Retry::None,
        }
    }
}

/// A server's event targets. Each has a queue of its name in the store.
#[derive(Debug)]
pub struct EventTargets {
    targets: BTreeMap<String, Arc<Target>>,
    queues: Arc<EventQueues>,
    listeners: Listeners,
    lost: LostEvents,
}

impl EventTargets {
    /// Creates the targets.
    ///
    /// # Errors
    /// [`Error::EventTarget`] if settings are invalid, or if a name is used twice.
    pub fn new(settings: Vec<EventTarget>) -> Result<Self> {
        let mut targets = BTreeMap::new();
        for settings in settings {
            let name = settings.name.clone();
            let fail = |why: &str| Error::EventTarget { name: name.clone(), why: why.to_owned() };
            Sender::new(&settings).map_err(|why| fail(&why))?;
            if name == LISTENERS {
                return Err(fail("the name is reserved"));
            }
            let target = Arc::new(Target {
                name: name.as_str().into(),
                rule_field: format!("{RULE}{name}"),
                settings,
                delivered: AtomicU64::default(),
                dropped: AtomicU64::default(),
                failures: AtomicU64::default(),
                state: Mutex::default(),
                logged_drops: LogLimit::default(),
            });
            if targets.insert(name.clone(), target).is_some() {
                return Err(fail("two targets have this name"));
            }
        }
        let names = targets.keys().map(String::as_str).chain([LISTENERS]);
        let queues = Arc::new(EventQueues::new(names.map(Into::into)));
        let (listeners, lost) = (Listeners::default(), LostEvents::default());
        Ok(Self { targets, queues, listeners, lost })
    }

    /// Returns the queues, for [`haul_file_store::Options::event_queues`].
    #[must_use]
    pub fn queues(&self) -> Arc<EventQueues> {
        Arc::clone(&self.queues)
    }

    /// Makes the next attempt of each target follow at once.
    pub fn retry(&self) {
        self.iter().for_each(|target| target.retry_now());
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Target>> {
        self.targets.get(name)
    }

    pub(crate) fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    pub(crate) fn reports(&self) -> impl Iterator<Item = TargetReport> {
        self.iter().map(|target| target.report())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Target>> {
        self.targets.values()
    }

    pub(super) fn lost(&self) -> &LostEvents {
        &self.lost
    }
}
