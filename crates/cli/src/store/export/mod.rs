//! `haul store export`: lists the objects, plans their paths, and writes them.

mod carry_out;
mod plan;

use std::fs;

use haul_disk::OsDisk;
use haul_file_store::{Damage, Store};

use self::carry_out::{Outcome, Work};
use self::plan::Plan;
use super::objects;
use crate::args::ExportArgs;
use crate::output::Name;
use crate::report::{Failure, OrFail, Result, say};
use crate::signals::Stop;
use crate::units::Count;

/// Writes what there is. `found` is the damage opening the store met: what it hit may be missing from
/// the listing, so that nothing else would tell that the copy is not whole.
pub(super) fn run(store: &Store, found: &[Damage], args: &ExportArgs) -> Result {
    let bucket = &args.from.bucket;
    store.bucket(bucket).or_fail(|| format!("cannot export {}", args.from))?;
    let objects = objects::all(store, bucket, &args.from.rest)?;
    if objects.is_empty() && !args.from.rest.is_empty() {
        let prefix = Name(&args.from.rest);
        return Err(Failure::new(format!("no key in {bucket} begins with \"{prefix}\"")));
    }
    let plan = plan::plan(objects, &args.from.rest);
    for (key, why) in &plan.refused {
        say(&format!("cannot export {bucket}/{}: {why}", Name(key)));
    }
    let dir = &args.dir;
    let cannot = || format!("cannot write into {}", dir.display());
    fs::create_dir_all(dir).or_fail(cannot)?;
    let root = OsDisk::open(dir).or_fail(cannot)?;
    let stop = Stop::on_signals("the files under way")?;
    let work = Work { store, bucket, plan: &plan, root: &root };
    let outcome = carry_out::carry_out(&work, args.jobs, &stop)?;
    // Whoever deletes the store after this must find the copy on the medium.
    let synced = fs::File::open(dir).and_then(|dir| Ok(rustix::fs::syncfs(&dir)?));
    synced.or_fail(|| format!("cannot sync the file system of {}", dir.display()))?;
    conclude(&plan, &outcome, &stop)?;
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::new("the store is damaged, as told above: objects may be missing from the copy"))
}

fn conclude(plan: &Plan, outcome: &Outcome, stop: &Stop) -> Result {
    say(&format!("exported {}", outcome.written));
    let left = plan.files.len() as u64 - outcome.written.amount.things - outcome.failed;
    if let Some(exit) = stop.asked().filter(|_| left > 0) {
        let left = Count(left, "object");
        return Err(Failure::new(format!("stopped with {left} left to export")).exit(exit));
    }
    match outcome.failed + plan.refused.len() as u64 {
        0 => Ok(()),
        count => {
            let count = Count(count, "object");
            Err(Failure::new(format!("{count} not exported, as told above")))
        }
    }
}
