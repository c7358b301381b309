//! `haul store restore`: creates a store from its copy in a remote object store.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_disk::{Disk, OsDisk, sync_parent};
use haul_replicate::{Error, Fetch, restore_store, restore_store_at};

use super::restore_pool::{self, MemberCopies};
use super::restore_report::{failure, json_fields, summary};
use crate::args::{OpenArgs, RestoreArgs};
use crate::output::Output;
use crate::remote;
use crate::report::{Exit, Failure, OrFail, Result};

/// Restores a store into a directory beside the target, and renames it when it is complete; or one
/// over several directories, in place: they may be mount points.
pub(crate) fn run(open: &OpenArgs, args: &RestoreArgs) -> Result {
    let remote = remote::open(&args.remote, &args.options)?;
    let [to] = &*open.data else { return restore_pool::run(&remote, open, args) };
    verify_target(to)?;
    let incomplete = incomplete_path(to)?;
    let cannot = || format!("cannot restore {} to {}", args.remote, to.display());
    fs::create_dir(&incomplete).or_fail(cannot)?;
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(&incomplete).or_fail(cannot)?);
    let fetch = if args.on_demand { Fetch::OnDemand } else { Fetch::Everything };
    let restored = match args.at {
        Some(at) => restore_store_at(&remote, &disk, at),
        None => restore_store(&remote, &disk, fetch),
    };
    let restored = match restored {
        Ok(restored) => restored,
        Err(error) => {
            // An incomplete store is of no use, and a repeated call needs the name.
            drop(fs::remove_dir_all(&incomplete));
            // The URL may be that of a store over several directories.
            let members = matches!(error, Error::NoCopy { .. })
                .then(|| MemberCopies::find(&remote, args).ok().filter(|found| !found.is_empty()));
            return match members.flatten() {
                Some(members) => members.restore(open, args),
                None => Err(failure(cannot(), error)),
            };
        }
    };
    // An empty directory is replaced.
    fs::rename(&incomplete, to).or_fail(cannot)?;
    sync_parent(to).or_fail(cannot)?;
    let mut output = Output::new();
    if args.json {
        output.line(json_fields(&restored))?;
    } else {
        output.line(summary(&args.remote, to, &restored, remote.requests()))?;
    }
    output.finish()
}

fn verify_target(to: &Path) -> Result {
    let is_used = match fs::read_dir(to) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    if !is_used {
        return Ok(());
    }
    let failure = Failure::new(format!("{} is not an empty directory", to.display()));
    Err(failure.advise("set --data to a directory that does not exist").exit(Exit::NotStarted))
}

/// Returns the path of the directory in which the store is restored.
fn incomplete_path(to: &Path) -> Result<PathBuf> {
    let Some(name) = to.file_name() else {
        return Err(Failure::new(format!("{} has no name", to.display())).exit(Exit::Usage));
    };
    let mut name = name.to_owned();
    name.push(".incomplete");
    Ok(to.with_file_name(name))
}
