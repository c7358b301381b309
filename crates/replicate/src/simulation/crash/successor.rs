//! Another machine becomes the copy's owner: a restored one, or a standby.

use std::sync::Arc;
use std::time::Duration;

use haul_disk_sim::MemoryDisk;
use haul_file_store::Replication;

use crate::error::{Error, Result};
use crate::owner::OwnedManifest;
use crate::progress::Progress;
use crate::simulation::crash::machine::{Machine, Process, is_missing, is_remote};
use crate::simulation::crash::model::Object;
use crate::simulation::crash::watcher::Watcher;
use crate::simulation::crash::world::World;
use crate::store::{Fetch, restore_store};

impl World {
    /// Restores the copy on an empty machine, which continues it. The owner may continue meanwhile,
    /// without knowing about it.
    pub(super) fn restore_elsewhere(&mut self) {
        for attempt in 0.. {
            let machine = Machine::new(&self.cloud, MemoryDisk::default());
            let fetch = *self.random.pick(&[Fetch::Everything, Fetch::OnDemand]);
            let restored = self.attempt(attempt, &machine, |_| {
                restore_store(&machine.remote, &machine.local(), fetch)
            });
            match restored {
                Ok(_) if machine.keeps_power() => {
                    self.let_owner_act();
                    if let Some(process) = self.start_owner(machine) {
                        self.counts.restores += 1;
                        return self.succeed(process);
                    }
                }
                Ok(_) => {}
                Err(error) => assert!(machine.is_off() || is_remote(&error), "{error:?}"),
            }
        }
    }

    /// Starts a machine until it owns the copy; `None` if the copy was changed after its state was
    /// fetched.
    fn start_owner(&mut self, mut machine: Machine) -> Option<Process> {
        for attempt in 0.. {
            let options = self.options();
            let (local_space, clock) = (self.local_space(), Arc::clone(&self.clock));
            let started = self.attempt(attempt, &machine, |_| {
                let progress = Arc::new(Progress::without_waiting());
                let mut process = Process::open(&machine, progress, local_space)?;
                process.claim(options, &clock)?;
                Ok(process)
            });
            match started {
                Ok(process) if machine.keeps_power() => return Some(process),
                Err(Error::NotThisLog { .. }) if machine.keeps_power() => return None,
                // A machine that was given up had sent a claim, which was executed late.
                Err(Error::Fenced { .. }) if machine.keeps_power() => return None,
                // The owner has removed a volume without objects.
                Err(error) if is_missing(&error) => return None,
                Ok(_) => {}
                Err(error) => assert!(machine.is_off() || is_remote(&error), "{error:?}"),
            }
            self.let_owner_act();
            machine = machine.restart(&mut self.random);
        }
        None
    }

    /// Makes a process that has claimed the copy the owner.
    fn succeed(&mut self, process: Process) {
        let previous = std::mem::replace(&mut self.owner, process);
        self.model.continue_copy(&self.owner.contents());
        if !previous.machine.is_off() && previous.has_claimed() {
            assert!(
                previous.progress.lease().is_none() || previous.progress.check_now().is_err(),
                "the previous owner has a lease"
            );
            self.previous = Some(previous);
        }
    }

    /// Lets the owner run a round while another machine attempts to become the owner.
    fn let_owner_act(&mut self) {
        if self.one_in(2) && self.owner.has_claimed() && !self.owner.machine.is_off() {
            // A failure may be final: the other machine has succeeded.
            if let Ok(manifest) = self.owner.ship() {
                self.model.acknowledge_copied(manifest);
            }
        }
    }

    /// Lets the previous owner store objects and run rounds. It must not extend the copy.
    pub(super) fn continue_previous_owner(&mut self) {
        let Some(mut previous) = self.previous.take() else { return };
        let object = Object { number: self.model.next_number(), bytes: 100_000 };
        let is_stored = previous.change("key 1", Some(object)).is_ok();
        match previous.ship() {
            Ok(_) => {
                assert!(!is_stored, "two owners extend the copy");
                self.previous = Some(previous);
            }
            Err(error) if error.is_final() => {
                assert!(previous.progress.check_now().is_err());
                self.counts.fenced += 1;
                self.refuse_restart(&previous);
            }
            Err(error) => {
                let is_off = previous.machine.is_off();
                assert!(is_off || is_remote(&error), "{error:?}");
                match is_off {
                    true => self.refuse_restart(&previous),
                    false => self.previous = Some(previous),
                }
            }
        }
    }

    /// Checks that a machine that lost the copy cannot claim it again.
    fn refuse_restart(&mut self, previous: &Process) {
        let machine = previous.machine.restart(&mut self.random);
        let options = self.options();
        let progress = Arc::new(Progress::without_waiting());
        let Ok(mut process) = Process::open(&machine, progress, Some(0)) else { return };
        let claimed = process.claim(options, &self.clock);
        let error = claimed.expect_err("two machines own the copy");
        assert!(matches!(error, Error::Fenced { .. }) || is_remote(&error), "{error:?}");
    }

    fn watch(&mut self, machine: Machine) -> Result<Option<Watcher>> {
        Watcher::open(machine, self.options(), &self.clock)
    }

    /// Lets the standby follow the copy. It takes the copy over if the owner's lease has run out,
    /// or if that is requested.
    pub(super) fn stand_by(&mut self, mut takes_over: bool) {
        let mut watcher = match self.standby.take() {
            Some(watcher) => watcher,
            None => self.watch(Machine::new(&self.cloud, MemoryDisk::default())).unwrap().unwrap(),
        };
        for attempt in 0.. {
            if takes_over {
                watcher.standby.control().take_over();
            }
            let machine = watcher.machine.clone();
            let stepped =
                self.attempt(attempt, &machine, |_| watcher.standby.step(&watcher.progress));
            match stepped {
                Ok(Some(owned)) => {
                    let process = self.complete(watcher, owned);
                    self.counts.takeovers += 1;
                    return self.succeed(process);
                }
                Ok(None) => {}
                Err(error @ (Error::NotThisLog { .. } | Error::Damaged { .. })) => {
                    panic!("the standby fails: {error:?}");
                }
                Err(error) => {
                    let is_explained = machine.is_off() || error.is_final() || is_remote(&error);
                    assert!(is_explained, "{error:?}");
                    // The takeover may have succeeded.
                    takes_over |= watcher.standby.until_expiry() == Some(Duration::ZERO);
                }
            }
            if machine.is_off() {
                let restarted = machine.restart(&mut self.random);
                watcher = self.watch(restarted).unwrap().unwrap();
            }
            if !takes_over {
                watcher.machine.keeps_power();
                self.standby = Some(watcher);
                return;
            }
            self.let_owner_act();
        }
    }

    /// Completes a takeover. The standby is restarted when its machine fails.
    fn complete(&mut self, mut watcher: Watcher, owned: OwnedManifest) -> Process {
        let machine = watcher.machine.clone();
        for attempt in 0.. {
            match self.attempt(attempt, &machine, |_| watcher.standby.fetch_rest(&owned)) {
                Ok(()) => break,
                Err(_) if machine.is_off() => return self.restart_takeover(&machine),
                Err(error) => assert!(is_remote(&error), "{error:?}"),
            }
            self.let_owner_act();
        }
        if let Some(left) = watcher.standby.until_expiry() {
            self.clock.advance(left);
        }
        let Watcher { standby, progress, options, .. } = watcher;
        let local_space = self.local_space();
        let started = standby.finish(owned).and_then(|takeover| {
            let mut process = Process::open(&machine, progress, local_space)?;
            process.follow(takeover, options)?;
            Ok(process)
        });
        match started {
            Ok(process) if machine.keeps_power() => process,
            Ok(_) => self.restart_takeover(&machine),
            Err(error) => {
                assert!(machine.is_off() || is_remote(&error), "{error:?}");
                self.restart_takeover(&machine)
            }
        }
    }

    /// Restarts a standby that owns the copy.
    fn restart_takeover(&mut self, machine: &Machine) -> Process {
        let mut machine = machine.restart(&mut self.random);
        for attempt in 0.. {
            let Some(mut watcher) = self.watch(machine.clone()).unwrap() else { break };
            match self.attempt(attempt, &machine, |_| watcher.standby.step(&watcher.progress)) {
                Ok(Some(owned)) => return self.complete(watcher, owned),
                Ok(None) => panic!("the standby does not know that it owns the copy"),
                Err(error) => {
                    assert!(machine.is_off() || is_remote(&error), "{error:?}");
                    machine = machine.restart(&mut self.random);
                }
            }
        }
        // The directory has a store.
        self.start_owner(machine).expect("no other machine owns the copy")
    }
}
