//! `haul store import`: finds the files, plans their order, and stores them.

mod carry_out;
mod plan;
mod source;
mod walk;

use std::path::Path;

use haul_file_store::{Error, Store};

use self::carry_out::{Outcome, Work};
use self::plan::Plan;
use self::source::Source;
use super::with_store;
use crate::args::{ImportArgs, OpenArgs};
use crate::opening::Missing;
use crate::report::{Failure, OrFail, Result, say};
use crate::signals::Stop;
use crate::units::Count;

pub(super) fn run(open: &OpenArgs, args: &ImportArgs) -> Result {
    // A mistyped path is told before a store is made, and the walk needs no lock.
    let source = Source::open(&args.path, args.follow)?;
    let walked = walk::walk(&source, &open.data);
    let mut plan = plan::plan(walked.found, &args.prefix);
    plan.refused.extend(walked.refused);
    tell(&plan, &args.path);
    with_store(open, "import", Missing::Make, |store, _damage| {
        make_bucket(store, &args.bucket)?;
        let rotational = haul_disk::probe(source.path()).ok().and_then(|s| s.queue.rotational);
        let work = Work {
            store,
            bucket: &args.bucket,
            source: &source,
            plan: &plan,
            big_object_bytes: open.big_object,
            skip_existing: args.skip_existing,
            one_reader: plan::one_reader(rotational),
        };
        let stop = Stop::on_signals("the files under way")?;
        conclude(&plan, &carry_out::carry_out(&work, args.jobs, &stop)?, &stop)
    })
}

fn make_bucket(store: &Store, bucket: &str) -> Result {
    match store.create_bucket(bucket) {
        Err(Error::BucketExists { .. }) => Ok(()),
        other => other.or_fail(|| format!("cannot import into \"{bucket}\"")),
    }
}

/// What is left out, before the work begins.
fn tell(plan: &Plan, path: &Path) {
    for (name, why) in &plan.refused {
        say(&format!("cannot import {}: {why}", path.join(name).display()));
    }
    if plan.links > 0 {
        let links = Count(plan.links, "symbolic link");
        say(&format!("note: left out {links}; --follow stores what they lead to"));
    }
    if plan.special > 0 {
        say(&format!("note: left out {} (sockets, FIFOs, devices)", Count(plan.special, "file")));
    }
}

fn conclude(plan: &Plan, outcome: &Outcome, stop: &Stop) -> Result {
    if outcome.same > 0 {
        say(&format!("left alone {}, stored already", Count(outcome.same, "file")));
    }
    let left = plan.files.len() as u64 - outcome.taken();
    if let Some(exit) = stop.asked().filter(|_| left > 0) {
        return Err(Failure::new(format!("stopped with {} left to import", Count(left, "file")))
            .advise("the same command with --skip-existing goes on from here")
            .exit(exit));
    }
    match outcome.failed + plan.refused.len() as u64 {
        0 => Ok(()),
        count => Err(Failure::new(format!("{} not imported, as told above", Count(count, "file")))),
    }
}
