//! `haul store compact`: frees the space of deleted objects.

use haul_file_store::Store;

use crate::output::Output;
use crate::report::{OrFail, Result};
use crate::units::{Bytes, Count};

pub(super) fn run(store: &Store) -> Result {
    let compacted = store.compact().or_fail(|| "cannot compact the store".to_owned())?;
    let mut output = Output::new();
    output.line(format_args!(
        "freed {}: removed {}, moved {}",
        Bytes(compacted.bytes_freed),
        Count(compacted.volumes_removed, "volume"),
        Bytes(compacted.bytes_moved),
    ))?;
    output.finish()
}
