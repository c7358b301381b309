//! `haul store restore`: creates a store from its copy in a remote object store.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul_disk::{Disk, OsDisk, sync_parent};
use haul_replicate::{Error, Fetch, Restored, restore_store, restore_store_at};
use serde_json::{Value, json};

use crate::args::{OpenArgs, RestoreArgs};
use crate::clock::rfc3339;
use crate::output::Output;
use crate::remote;
use crate::report::{Exit, Failure, OrFail, Result};
use crate::units::{Bytes, Count};

/// Restores into a directory beside the target, and renames it when it is complete.
pub(crate) fn run(open: &OpenArgs, args: &RestoreArgs) -> Result {
    let remote = remote::open(&args.remote, &args.options)?;
    let to = open.single_dir("\"haul store restore\"")?;
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
    let restored = restored.map_err(|error| failure(cannot(), error)).inspect_err(|_failure| {
        // An incomplete store is of no use, and a repeated call needs the name.
        drop(fs::remove_dir_all(&incomplete));
    })?;
    // An empty directory is replaced.
    fs::rename(&incomplete, to).or_fail(cannot)?;
    sync_parent(to).or_fail(cannot)?;
    let mut output = Output::new();
    if args.json {
        output.line(json(&restored))?;
    } else {
        output.line(format_args!(
            "restored {} to {} as of {}: {}, fetched {} with {}",
            args.remote,
            to.display(),
            rfc3339(time(restored.written_ms)),
            Count(restored.segments, "volume"),
            Bytes(restored.fetched_bytes),
            Count(remote.requests(), "request"),
        ))?;
    }
    output.finish()
}

fn failure(cannot: String, error: Error) -> Failure {
    let failure = Failure::new(cannot);
    let failure = match &error {
        Error::NotKept { oldest_ms } => {
            let oldest = rfc3339(time(*oldest_ms));
            failure.advise(format!("the oldest state that is kept is of {oldest}"))
        }
        _ => failure,
    };
    failure.because(error)
}

fn time(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
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

fn json(restored: &Restored) -> Value {
    json!({
        "volumes": restored.segments,
        "fetched_bytes": restored.fetched_bytes,
        "end": restored.end.to_string(),
        "written_ms": restored.written_ms,
    })
}
