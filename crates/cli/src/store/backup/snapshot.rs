//! `haul store snapshot`: creates a snapshot of the store.

use haul_file_store::{Error, SnapshotInfo};
use haul_store_pool::Pool;
use serde_json::{Value, json};

use crate::args::SnapshotArgs;
use crate::output::Output;
use crate::report::{Exit, Failure, Result};
use crate::units::{Bytes, Count};

pub(crate) fn run(store: &Pool, args: &SnapshotArgs) -> Result {
    let cannot = || format!("cannot create the snapshot {}", args.to.display());
    if store.move_progress().is_some_and(|progress| progress.slots_left > 0) {
        let message = format!("{}: keys are being moved between the disks", cannot());
        let failure = Failure::new(message);
        // Only a server moves them.
        return Err(failure.advise("serve the store until haul_moving_slots is 0"));
    }
    let info = store.snapshot(&args.to).map_err(|error| {
        let is_target = matches!(error, Error::Invalid { .. });
        let failure = Failure::new(cannot()).because(error);
        // The target is not empty.
        if is_target { failure.exit(Exit::NotStarted) } else { failure }
    })?;
    let mut output = Output::new();
    if args.json {
        output.line(json(&info))?;
    } else {
        output.line(format_args!(
            "created snapshot {}: {} ({}); linked {}, copied {}",
            args.to.display(),
            Count(info.objects, "object"),
            Bytes(info.object_bytes),
            Bytes(info.linked_bytes),
            Bytes(info.copied_bytes),
        ))?;
    }
    output.finish()
}

fn json(info: &SnapshotInfo) -> Value {
    json!({
        "objects": info.objects,
        "object_bytes": info.object_bytes,
        "volumes": info.volumes,
        "big_files": info.big_files,
        "linked_bytes": info.linked_bytes,
        "copied_bytes": info.copied_bytes,
    })
}
