//! `haul store lifecycle`: shows, replaces and applies the rules by which objects expire.

mod run;
mod show;

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use haul_file_store::Lifecycle;
use haul_s3_server::lifecycle_from_document;
use haul_store_pool::Pool;

use crate::args::{LifecycleArgs, LifecycleCommand, LifecycleSetArgs};
use crate::report::{Exit, OrFail, Result};

pub(super) fn run(store: &Pool, args: &LifecycleArgs) -> Result {
    match &args.command {
        LifecycleCommand::Show(args) => show::run(store, args),
        LifecycleCommand::Set(args) => set(store, args),
        LifecycleCommand::Remove { bucket } => store
            .set_lifecycle(bucket, &Lifecycle::default())
            .or_fail(|| format!("cannot remove the lifecycle rules of {bucket}")),
        LifecycleCommand::Run(args) => run::run(store, args),
    }
}

fn set(store: &Pool, args: &LifecycleSetArgs) -> Result {
    let LifecycleSetArgs { bucket, file } = args;
    let text = read(file).or_not_start(|| format!("cannot read {}", file.display()))?;
    let lifecycle = lifecycle_from_document(&text)
        .or_fail(|| format!("{} has no valid lifecycle rules", file.display()))
        .map_err(|failure| failure.exit(Exit::Usage))?;
    store
        .set_lifecycle(bucket, &lifecycle)
        .or_fail(|| format!("cannot set the lifecycle rules of {bucket}"))
}

fn read(file: &Path) -> io::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text)?;
        return Ok(text);
    }
    fs::read_to_string(file)
}
