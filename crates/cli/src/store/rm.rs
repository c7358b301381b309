//! `haul store rm`: deletes objects.

use std::io::{self, BufRead, IsTerminal, Write};

use haul_store_pool::Pool;
use serde_json::{Value, json};

use super::objects;
use crate::advice::with_advice;
use crate::args::RmArgs;
use crate::location::Location;
use crate::output::{Name, Output};
use crate::report::{Exit, Failure, OrFail, Result, print_message};
use crate::units::{Bytes, Count};

/// The maximum number of objects deleted in one call, which makes the deletions durable together.
const BATCH_KEYS: usize = 1000;

pub(super) fn run(store: &Pool, args: &RmArgs) -> Result {
    let mut output = Output::new();
    let mut is_complete = true;
    for location in &args.places {
        let deleted = match args.recursive {
            true => delete_prefix(store, location, args.yes)?,
            false => delete_one(store, location)?,
        };
        is_complete &= deleted.failed_objects == 0;
        if args.json {
            output.line(json(location, deleted, args.recursive))?;
            output.send()?;
        }
    }
    if is_complete { Ok(()) } else { Err(Failure::reported()) }
}

/// The objects that were deleted.
#[derive(Debug, Clone, Copy, Default)]
struct Deleted {
    objects: u64,
    bytes: u64,
    /// The number of objects that do not exist, or could not be deleted.
    failed_objects: u64,
}

fn json(location: &Location, deleted: Deleted, is_recursive: bool) -> Value {
    let mut json = json!({
        "bucket": location.bucket,
        "deleted_objects": deleted.objects,
        "failed_objects": deleted.failed_objects,
    });
    if is_recursive {
        json["prefix"] = location.rest.as_str().into();
        json["deleted_bytes"] = deleted.bytes.into();
    } else {
        json["key"] = location.rest.as_str().into();
    }
    json
}

fn delete_one(store: &Pool, location: &Location) -> Result<Deleted> {
    let Location { bucket, rest: key } = location;
    if key.is_empty() {
        return Err(Failure::new(format!("{location} is a bucket, not an object"))
            .advise("\"haul store rb\" removes an empty bucket, --recursive deletes its objects")
            .exit(Exit::Usage));
    }
    let existed = store.delete(bucket, key).or_fail(|| format!("cannot delete {location}"))?;
    if !existed {
        print_message(&format!("cannot delete {location}: no such object"));
    }
    let objects = u64::from(existed);
    Ok(Deleted { objects, failed_objects: 1 - objects, ..Deleted::default() })
}

/// Deletes all objects with a prefix.
fn delete_prefix(store: &Pool, location: &Location, yes: bool) -> Result<Deleted> {
    let Location { bucket, rest: prefix } = location;
    store.bucket(bucket).or_fail(|| format!("cannot delete from {bucket}"))?;
    let objects = objects::all(store, bucket, prefix)?;
    let which = match prefix.as_str() {
        "" => format!("all in {bucket}"),
        prefix => format!("all keys in {bucket} that begin with \"{}\"", Name(prefix)),
    };
    let bytes = objects.iter().map(|info| info.bytes).sum();
    let what = format!("{} ({}), {which}", Count(objects.len() as u64, "object"), Bytes(bytes));
    if !objects.is_empty() && !yes && !confirm(&what)? {
        return Err(Failure::new("nothing was deleted"));
    }
    let mut deleted = Deleted::default();
    for batch in objects.chunks(BATCH_KEYS) {
        let keys: Vec<&str> = batch.iter().map(|info| info.key.as_str()).collect();
        let results = store.delete_many(bucket, &keys);
        for (info, result) in batch.iter().zip(results) {
            let cannot = || format!("cannot delete {bucket}/{}", Name(&info.key));
            match with_advice(result.or_fail(cannot)) {
                Ok(_existed) => {
                    deleted.objects += 1;
                    deleted.bytes += info.bytes;
                }
                Err(failure) => {
                    deleted.failed_objects += 1;
                    print_message(&failure.text().unwrap_or_default());
                }
            }
        }
    }
    Ok(deleted)
}

/// Asks the user on the terminal for confirmation. Fails if stdin is not a terminal.
fn confirm(what: &str) -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(Failure::new(format!("refusing to delete {what} without confirmation"))
            .advise("add --yes")
            .exit(Exit::Usage));
    }
    let ask = || -> io::Result<String> {
        let mut stderr = io::stderr();
        write!(stderr, "Delete {what}? [y/N] ")?;
        stderr.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().or_fail(|| "cannot ask for confirmation".to_owned())?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
