//! Formats the results of `haul probe` as JSON. The module does no I/O.

use haul_disk::{DirectIo, Storage};
use haul_measure::{BLOCK_BYTES, LONG_BYTES, LONG_DEPTH, Measured, Rotation, Sample};
use haul_tuning::Choice;
use serde_json::{Value, json};

/// Returns all results as one JSON object.
pub(super) fn json(
    storage: &Storage,
    choices: &[Choice],
    warnings: &[String],
    measured: Option<&Measured>,
) -> Value {
    json!({
        "storage": storage_json(storage),
        "choices": choices.iter().map(choice_json).collect::<Vec<_>>(),
        "warnings": warnings,
        "measured": measured.map(measured_json),
    })
}

fn choice_json(choice: &Choice) -> Value {
    json!({ "what": choice.name, "choice": choice.choice, "why": choice.reason })
}

/// Returns the properties of the storage as one JSON object.
pub(crate) fn storage_json(storage: &Storage) -> Value {
    let direct_io = storage.direct_io.map(|direct_io| match direct_io {
        DirectIo::Unsupported => json!(false),
        DirectIo::Aligned { memory_bytes, offset_bytes } => {
            json!({ "memory_bytes": memory_bytes, "offset_bytes": offset_bytes })
        }
    });
    let mount = storage.mount.as_ref().map(
        |mount| json!({ "point": mount.point, "source": mount.source, "options": mount.options }),
    );
    let queue = &storage.queue;
    let device = storage.device.as_ref().map(|device| {
        json!({
            "name": device.name,
            "disk": device.disk,
            "rotational": queue.rotational,
            "volatile_write_cache": queue.volatile_write_cache,
            "fua": queue.fua,
            "logical_block_bytes": queue.logical_block_bytes,
            "physical_block_bytes": queue.physical_block_bytes,
            "atomic_write_bytes_max": queue.atomic_write_bytes_max,
            "zero_write_bytes_max": queue.zero_write_bytes_max,
            "readahead_bytes": queue.readahead_bytes,
            "queue_depth": queue.depth,
            "scheduler": queue.scheduler,
        })
    });
    json!({
        "path": storage.path.to_string_lossy(),
        "file_system": storage.file_system.to_string(),
        "mount": mount,
        "journal": storage.journal,
        "copy_on_write": storage.copy_on_write,
        "direct_io": direct_io,
        "write_unit_bytes": storage.write_unit_bytes(),
        "device": device,
    })
}

fn measured_json(measured: &Measured) -> Value {
    let writes = measured.writes.iter().map(|row| {
        let mut line = sample_json(&row.sample);
        line["method"] = json!(row.method.name());
        line["durable"] = json!(row.method.is_durable());
        line["why_not"] = json!(row.why_not);
        line
    });
    let reads = measured.reads.iter().map(|row| {
        let mut line = sample_json(&row.sample);
        line["depth"] = json!(row.depth);
        line
    });
    json!({
        "block_bytes": BLOCK_BYTES,
        "writes": writes.collect::<Vec<_>>(),
        "random_reads": reads.collect::<Vec<_>>(),
        "sequential": {
            "block_bytes": LONG_BYTES,
            "depth": LONG_DEPTH,
            "read_bytes_per_s": measured.read_bytes_per_s,
            "write_bytes_per_s": measured.write_bytes_per_s,
        },
        "depth": measured.depth,
        "rotates": match measured.rotation {
            Rotation::Unknown => "unknown",
            Rotation::Believable => "as claimed",
            Rotation::Denied => "claimed, and denied by the reads",
        },
        "notes": measured.notes,
    })
}

fn sample_json(sample: &Sample) -> Value {
    json!({
        "count": sample.latencies.count(),
        "per_s": sample.per_second(),
        "median_us": sample.latencies.percentile_us(50.0),
        "p99_us": sample.latencies.percentile_us(99.0),
    })
}
