//! `haul store rm`: deletes objects.

use std::io::{self, BufRead, IsTerminal, Write};

use haul_file_store::Store;

use super::location::Location;
use super::objects;
use crate::advice::with_advice;
use crate::args::RmArgs;
use crate::output::Name;
use crate::report::{Exit, Failure, OrFail, Result, print_message};
use crate::units::{Bytes, Count};

/// The maximum number of objects deleted in one call, which makes the deletions durable together.
const BATCH_KEYS: usize = 1000;

pub(super) fn run(store: &Store, args: &RmArgs) -> Result {
    let mut complete = true;
    for location in &args.places {
        complete &= if args.recursive {
            delete_prefix(store, location, args.yes)?
        } else {
            delete_one(store, location)?
        };
    }
    if complete { Ok(()) } else { Err(Failure::reported()) }
}

/// Deletes one object; returns `false` if it does not exist.
fn delete_one(store: &Store, location: &Location) -> Result<bool> {
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
    Ok(existed)
}

/// Deletes all objects with a prefix; returns `false` if any of them could not be deleted.
fn delete_prefix(store: &Store, location: &Location, yes: bool) -> Result<bool> {
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
    let mut complete = true;
    for batch in objects.chunks(BATCH_KEYS) {
        let keys: Vec<&str> = batch.iter().map(|info| info.key.as_str()).collect();
        let results = store.delete_many(bucket, &keys);
        for (key, result) in keys.iter().zip(results) {
            let cannot = || format!("cannot delete {bucket}/{}", Name(key));
            let failure = with_advice(result.or_fail(cannot)).err();
            if let Some(text) = failure.and_then(|failure| failure.text()) {
                print_message(&text);
                complete = false;
            }
        }
    }
    Ok(complete)
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
