//! Doing something about duplicates, so that no content is ever lost by it.
//!
//! Each file that goes is compared once more with one that stays, byte by byte, with both open and
//! watched, at the moment it goes. See [`Actor::act`].

mod compare;
mod facts;
mod left;
mod moving;
mod script;
mod side;
mod swap;

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use haul_disk::{Error, Op, Shared, share_blocks};
use rustix::fs::FlockOperation;

use crate::keep::{Choice, Facts, Rules, choose};
use crate::report::Group;
use crate::transform::Transform;

pub use left::Left;
pub use script::script;
pub(crate) use side::identity;
use side::{Side, Watch};
use swap::{Conditions, Instead};

/// What is done about a file that is there more often than wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Its name is removed.
    Remove,
    /// Its name becomes a hard link to the kept file.
    HardLink,
    /// Its name becomes a symbolic link to the kept file.
    SymLink,
    /// It shares the blocks of the kept file, and stays a file of its own.
    Share,
    /// It is moved below this directory, with its whole path.
    Move(PathBuf),
}

/// How it is done.
#[derive(Debug)]
pub struct Options {
    /// What is done.
    pub action: Action,
    /// About which files.
    pub rules: Rules,
    /// Files that other programs hold locks on are left alone.
    pub lock: bool,
    /// Nothing is done, but all is told as if it were.
    pub dry_run: bool,
    /// Files are compared by what this command makes of them, as the report did.
    pub transform: Option<Transform>,
}

/// Hears what is done.
pub trait Events {
    /// `drop` went, or would go; `keep` is what it equals.
    fn done(&mut self, keep: &Path, drop: &Path, bytes: u64);
    /// Nothing was done about this file.
    fn left(&mut self, path: &Path, why: &Left);
}

/// Acts on one group after the other.
#[derive(Debug)]
pub struct Actor {
    options: Options,
    /// File systems that were synced, and when.
    synced: HashMap<u64, i64>,
}

impl Actor {
    /// One that has done nothing yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, synced: HashMap::new() }
    }

    /// Acts on a group: [`choose`] says which of its files stay, and each of the others goes if
    /// it equals one of those at this moment. What is not so is left, and told to `events`.
    ///
    /// What is certain when a file goes: its name led to a file with the same bytes as the kept
    /// one, and the kept one had its name. While both were compared and until it was gone nobody
    /// could change either: the kernel lets writers wait (a lease), and if anybody waited or had it
    /// open already, the file is left. Where the kernel gives no lease, which is for files of other
    /// users and on file systems such as NFS, the times of both files say the same, but writes
    /// through a mapping are not seen by them.
    pub fn act(&mut self, group: &Group, events: &mut dyn Events) {
        let rules = &self.options.rules;
        let facts = match facts::facts(group, rules, &mut |path, left| events.left(path, &left)) {
            Ok(facts) => facts,
            Err(left) => {
                group.members.iter().for_each(|member| events.left(&member.path, &left));
                return;
            }
        };
        let Choice { keep, drop } = choose(&facts, rules);
        for drop in drop {
            let drop = &facts[drop];
            // The next one may still equal it when the first does not any more.
            let mut outcome = Err(Left::NothingToKeep);
            for keep in keep.iter().map(|keep| &facts[*keep]).filter(|keep| !keep.is_link) {
                outcome = self.pair(keep, drop).map(|()| keep);
                if !matches!(outcome, Err(Left::Differs(_) | Left::OtherFileSystem(_))) {
                    break;
                }
            }
            match outcome {
                Ok(keep) => events.done(&keep.path, &drop.path, drop.identity.bytes),
                Err(left) => events.left(&drop.path, &left),
            }
        }
    }

    fn pair(&mut self, keep: &Facts, drop: &Facts) -> Result<(), Left> {
        if self.options.dry_run {
            return Ok(());
        }
        let keep = Side::open(&keep.path, &keep.identity).map_err(|left| match left {
            Left::Changed => Left::NothingToKeep,
            left => left,
        })?;
        let drop = Side::open(&drop.path, &drop.identity)?;
        if keep.is_same_name(&drop) {
            return Err(Left::SameName(keep.path));
        }
        let is_link = keep.is_same_file(&drop);
        if is_link && matches!(self.options.action, Action::HardLink | Action::Share) {
            return Err(Left::Already(keep.path));
        }
        // Two locks of ours on one file would be in each other's way.
        if self.options.lock && !is_link {
            keep.lock(FlockOperation::NonBlockingLockShared)?;
            drop.lock(FlockOperation::NonBlockingLockExclusive)?;
        }
        if self.options.action == Action::Share {
            return share(&keep, &drop);
        }
        let now = now_ns();
        let watches = [keep.watch(now)?, drop.watch(now)?];
        self.compare(&keep, &drop, &watches)?;
        self.settle(&keep, now)?;
        let conditions = Conditions { keep: &keep, watches: &watches };
        match &self.options.action {
            Action::Remove => swap::remove(&drop, &conditions),
            Action::HardLink => swap::replace(&drop, Instead::HardLink, &conditions),
            Action::SymLink => swap::replace(&drop, Instead::SymLink(&keep.path), &conditions),
            Action::Move(target) => {
                moving::relocate(&drop, &moving::destination(target, &drop.path), &conditions)
            }
            Action::Share => Ok(()),
        }
    }

    fn compare(&self, keep: &Side, drop: &Side, watches: &[Watch<'_>]) -> Result<(), Left> {
        let Some(transform) = &self.options.transform else {
            return compare::compare(keep, drop, watches);
        };
        let made = |side: &Side| {
            transform.digest_of(&side.path).map_err(|error| Left::Transform(error.to_string()))
        };
        if made(keep)? != made(drop)? {
            return Err(Left::Differs(keep.path.clone()));
        }
        watches.iter().try_for_each(Watch::check)
    }

    /// Makes sure that what is kept is on the medium before another copy goes: a power cut must
    /// not take what was only in memory. Once for each file system, and for each file that changed
    /// since.
    fn settle(&mut self, keep: &Side, now: i64) -> Result<(), Left> {
        let device = keep.identity.device;
        let fail = |source| Left::from(Error::new(Op::Sync, &keep.path, source));
        match self.synced.get(&device) {
            Some(synced) if keep.identity.changed_ns < *synced => Ok(()),
            Some(_) => rustix::fs::fsync(&keep.file).map_err(fail),
            None => {
                rustix::fs::syncfs(&keep.file).map_err(fail)?;
                // Times of files are those of the last tick.
                self.synced.insert(device, now.saturating_sub(side::TICK_NS));
                Ok(())
            }
        }
    }
}

/// The kernel compares, with both files locked.
fn share(keep: &Side, drop: &Side) -> Result<(), Left> {
    if keep.identity.device != drop.identity.device {
        return Err(Left::OtherFileSystem(keep.path.clone()));
    }
    match share_blocks(keep.file.as_fd(), drop.file.as_fd(), drop.identity.bytes) {
        Ok(Shared::Same) => Ok(()),
        Ok(Shared::Differs) => Err(Left::Differs(keep.path.clone())),
        Err(error) if error.is_unsupported() => Err(Left::CannotShare),
        Err(error) => Err(error.into()),
    }
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
