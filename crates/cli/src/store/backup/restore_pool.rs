//! Restores a store over several directories from the copies of its members.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use haul_disk::{Disk, error_chain};
use haul_file_store::{Error as StoreError, Options, Result as StoreResult, Store};
use haul_replicate::{
    Error, Fetch, Progress, Remote, Restored, TieredDisk, check_copy, find_copy,
    restore_store_at_beside, restore_store_beside,
};
use haul_store_pool::{
    CopiedBy, Copies, FoundCopy, MembershipFile, RestoredMember, RestoredPool, restore_pool,
};
use serde_json::{Value, json};

use super::restore_report::{failure, json_fields, summary};
use crate::args::{OpenArgs, RestoreArgs};
use crate::output::Output;
use crate::remote::copies::{CACHE_BYTES, member_name, member_number};
use crate::report::{Exit, Failure, OrFail, Result};
use crate::units::Count;

/// The copies below a URL.
pub(super) struct MemberCopies {
    remotes: BTreeMap<u16, Remote>,
    found: Vec<FoundCopy>,
    /// The first copy without a state at the requested time, and the reason.
    not_kept: Option<(u16, Error)>,
    fetch: Fetch,
    at: Option<SystemTime>,
    restored: Mutex<BTreeMap<u16, Restored>>,
}

impl fmt::Debug for MemberCopies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberCopies").field("remotes", &self.remotes).finish_non_exhaustive()
    }
}

impl MemberCopies {
    /// Looks for the copies of members below a URL.
    pub(super) fn find(remote: &Remote, args: &RestoreArgs) -> haul_replicate::Result<Self> {
        let fetch = if args.on_demand { Fetch::OnDemand } else { Fetch::Everything };
        let (remotes, at) = (BTreeMap::new(), args.at);
        let restored = Mutex::default();
        let mut copies = Self { remotes, found: Vec::new(), not_kept: None, fetch, at, restored };
        for member in remote.folders()?.iter().filter_map(|folder| member_number(folder)) {
            let below = remote.below(&member_name(member));
            match find_copy(&below, MembershipFile::NAME, args.at) {
                Ok(None) => continue,
                Ok(Some(copy)) => {
                    let (written_ms, membership) = (copy.written_ms, copy.file);
                    copies.found.push(FoundCopy { member, written_ms, membership });
                }
                Err(error @ Error::NotKept { .. }) => {
                    copies.not_kept.get_or_insert((member, error));
                }
                Err(error) => return Err(error),
            }
            copies.remotes.insert(member, below);
        }
        Ok(copies)
    }

    /// Returns `true` if there is no copy of a member.
    pub(super) fn is_empty(&self) -> bool {
        self.remotes.is_empty()
    }

    /// Restores all members into the directories of `open`.
    pub(super) fn restore(self, open: &OpenArgs, args: &RestoreArgs) -> Result {
        let cannot = || format!("cannot restore {} to {}", args.remote, open.dirs());
        let options = Options {
            // Opening a log prepares its next segment, which is never written.
            volume_bytes: open.big_object.saturating_mul(4).max(4 << 20),
            idle_watermark_ms: 0,
            holder: format!("haul store restore, process {}", std::process::id()),
            ..Options::default()
        };
        let pool = restore_pool(&open.data, &self.found, &self, &options);
        let pool = pool.map_err(|error| self.failure(cannot(), error))?;
        let restored = self.restored.lock().unwrap_or_else(PoisonError::into_inner);
        let mut output = Output::new();
        if args.json {
            let members = pool.members.iter();
            let members: Vec<Value> =
                members.map(|member| self.json(member, &restored[&member.number])).collect();
            output.line(json!({ "members": members, "moving_slots": pool.moving_slots }))?;
            return output.finish();
        }
        let RestoredPool { members, moving_slots } = &pool;
        for (member, dir) in members.iter().zip(&open.data) {
            let number = member.number;
            let url = format!("{}/{}", args.remote.trim_end_matches('/'), member_name(number));
            let requests = self.remotes[&number].requests();
            output.line(summary(&url, dir, &restored[&number], requests))?;
        }
        if *moving_slots > 0 {
            let slots = Count(*moving_slots as u64, "slot");
            output
                .line(format_args!("the keys of {slots} are in two directories: they are moved"))?;
        }
        output.finish()
    }

    fn json(&self, member: &RestoredMember, restored: &Restored) -> Value {
        let mut fields = json_fields(restored);
        fields["member"] = member.number.into();
        fields["dir"] = member.dir.display().to_string().into();
        fields
    }

    fn failure(&self, cannot: String, error: StoreError) -> Failure {
        match &self.not_kept {
            Some((member, Error::NotKept { oldest_ms })) => {
                let cannot = format!("{cannot}: {}", error_chain(&error));
                let what = format!("{cannot}; {} is not kept as of then", member_name(*member));
                failure(what, Error::NotKept { oldest_ms: *oldest_ms })
            }
            _ => Failure::new(cannot).because(error).exit(Exit::NotStarted),
        }
    }

    fn remote(&self, member: u16) -> StoreResult<&Remote> {
        let unknown = || invalid(format!("there is no copy of {}", member_name(member)));
        self.remotes.get(&member).ok_or_else(unknown)
    }
}

fn invalid(what: String) -> StoreError {
    StoreError::Invalid { what }
}

impl Copies for MemberCopies {
    fn prepare(
        &self,
        member: Option<u16>,
        local: &Arc<dyn Disk>,
        _: bool,
    ) -> StoreResult<CopiedBy> {
        let replication = Arc::new(Progress::without_waiting());
        let Some(member) = member.filter(|_| self.fetch == Fetch::OnDemand) else {
            return Ok(CopiedBy { disk: None, replication });
        };
        let disk = TieredDisk::new(Arc::clone(local), self.remote(member)?, CACHE_BYTES);
        Ok(CopiedBy { disk: Some(Arc::new(disk)), replication })
    }

    fn start(&self, _: Option<u16>, _: &Arc<Store>, _: Option<MembershipFile>) -> StoreResult<()> {
        Err(invalid("a restore does not continue copies".to_owned()))
    }

    fn check(&self, member: u16) -> StoreResult<()> {
        check_copy(self.remote(member)?).map_err(|error| invalid(error_chain(&error).to_string()))
    }

    fn restore(&self, member: u16, disk: &Arc<dyn Disk>) -> StoreResult<u64> {
        let remote = self.remote(member)?;
        let restored = match self.at {
            Some(at) => restore_store_at_beside(remote, disk, at),
            None => restore_store_beside(remote, disk, self.fetch),
        };
        let restored = restored.map_err(|error| invalid(error_chain(&error).to_string()))?;
        let written_ms = restored.written_ms;
        let mut all = self.restored.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(member, restored);
        Ok(written_ms)
    }
}

/// Restores the store over several directories whose copies are below a URL.
pub(super) fn run(remote: &Remote, open: &OpenArgs, args: &RestoreArgs) -> Result {
    let cannot = || format!("cannot restore {} to {}", args.remote, open.dirs());
    MemberCopies::find(remote, args).or_fail(cannot)?.restore(open, args)
}
