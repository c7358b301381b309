//! `haul store rm`.

use std::io::{self, BufRead, IsTerminal, Write};

use haul_file_store::Store;

use super::objects;
use super::place::Place;
use crate::args::RmArgs;
use crate::output::Name;
use crate::report::{Exit, Failure, OrFail, Result, say};
use crate::units::{Bytes, Count};

/// How many deletes share a sync.
const BATCH_KEYS: usize = 1000;

pub(super) fn run(store: &Store, args: &RmArgs) -> Result {
    let mut all_well = true;
    for place in &args.places {
        all_well &= if args.recursive { many(store, place, args.yes)? } else { one(store, place)? };
    }
    if all_well { Ok(()) } else { Err(Failure::told()) }
}

/// Whether there was an object to delete.
fn one(store: &Store, place: &Place) -> Result<bool> {
    if place.rest.is_empty() {
        return Err(Failure::new(format!("{place} is a bucket, not an object"))
            .advise("\"haul store rb\" removes an empty bucket, --recursive deletes its objects")
            .exit(Exit::Usage));
    }
    let was_there =
        store.delete(&place.bucket, &place.rest).or_fail(|| format!("cannot delete {place}"))?;
    if !was_there {
        say(&format!("cannot delete {place}: there is no such object"));
    }
    Ok(was_there)
}

/// Whether everything was deleted.
fn many(store: &Store, place: &Place, yes: bool) -> Result<bool> {
    store.bucket(&place.bucket).or_fail(|| format!("cannot delete from {}", place.bucket))?;
    let objects = objects::all(store, &place.bucket, &place.rest)?;
    let which = match place.rest.as_str() {
        "" => format!("all of {}", place.bucket),
        prefix => format!("all that begins with \"{}\" in {}", Name(prefix), place.bucket),
    };
    let bytes = objects.iter().map(|info| info.bytes).sum();
    let what = format!("{} ({}), {which}", Count(objects.len() as u64, "object"), Bytes(bytes));
    if !objects.is_empty() && !yes && !confirm(&what)? {
        return Err(Failure::new("nothing was deleted"));
    }
    let mut all_well = true;
    for batch in objects.chunks(BATCH_KEYS) {
        let keys: Vec<&str> = batch.iter().map(|info| info.key.as_str()).collect();
        let results = store.delete_many(&place.bucket, &keys);
        for (key, result) in keys.iter().zip(results) {
            let cannot = || format!("cannot delete {}/{}", place.bucket, Name(key));
            if let Some(text) = result.or_fail(cannot).err().and_then(|failure| failure.text()) {
                say(&text);
                all_well = false;
            }
        }
    }
    Ok(all_well)
}

/// Asks a person; without one there is nobody to say yes.
fn confirm(what: &str) -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(Failure::new(format!("not deleting {what} without being asked to for sure"))
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
    let answer = ask().or_fail(|| "cannot ask whether to delete".to_owned())?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
