//! What is printed about the restore of a copy.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul_replicate::{Error, Restored};
use serde_json::{Value, json};

use crate::clock::rfc3339;
use crate::report::Failure;
use crate::units::{Bytes, Count};

/// Describes the restore of a copy in one line.
pub(super) fn summary(url: &str, to: &Path, restored: &Restored, requests: u64) -> String {
    format!(
        "restored {url} to {} as of {}: {}, fetched {} with {}",
        to.display(),
        rfc3339(time(restored.written_ms)),
        Count(restored.segments, "volume"),
        Bytes(restored.fetched_bytes),
        Count(requests, "request"),
    )
}

/// Returns the failure of a restore, with the oldest state that is kept if the requested one is not.
pub(super) fn failure(cannot: String, error: Error) -> Failure {
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

/// Returns the keys of the JSON object about one copy.
pub(super) fn json_fields(restored: &Restored) -> Value {
    json!({
        "volumes": restored.segments,
        "fetched_bytes": restored.fetched_bytes,
        "end": restored.end.to_string(),
        "written_ms": restored.written_ms,
    })
}
