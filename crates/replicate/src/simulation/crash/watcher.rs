//! A machine with a standby.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::lease::Clock;
use crate::options::Options;
use crate::progress::Progress;
use crate::simulation::crash::machine::{Machine, SlowClock};
use crate::standby::Standby;

/// A machine with a standby, which takes the copy over with these options.
pub(super) struct Watcher {
    pub(super) machine: Machine,
    pub(super) standby: Standby,
    pub(super) progress: Arc<Progress>,
    pub(super) options: Options,
}

impl Watcher {
    /// Starts a machine's standby; `None` if the machine has a store.
    pub(super) fn open(
        machine: Machine,
        options: Options,
        clock: &Arc<SlowClock>,
    ) -> Result<Option<Self>> {
        let clock: Arc<dyn Clock> = Arc::clone(clock) as _;
        let progress = Arc::new(Progress::without_waiting());
        progress.set_lease(options.lease, &clock);
        let (remote, local) = (&machine.remote, machine.local());
        let standby = Standby::with_clock(remote, &local, Duration::ZERO, clock)?;
        Ok(standby.map(|standby| Self { machine, standby, progress, options }))
    }
}
