//! Runs MinIO's load generator warp, and parses its report.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::options::Options;
use super::servers::RIVALS;
use crate::net::bench::{Bench, Case, Tools};
use crate::net::meter::Used;
use crate::net::objects::{Access, BUCKET, create_bucket};
use crate::net::presigned::{ACCESS_KEY, REGION, SECRET_KEY};
use crate::net::programs::find;
use crate::net::sample::{CPU, RATE, Sample, short};
use crate::net::server::Server;
use haul_measure::{Error, Result};

/// Measures PUT requests with signatures in the header; notes if warp is not installed.
pub(super) fn put(bench: &mut Bench<'_>, options: &Options) -> Result<()> {
    let Some(warp) = find(&options.net.path, "warp") else {
        bench.report.notes.push("warp is not installed, so PUT was not measured.".to_owned());
        return Ok(());
    };
    for bytes in options.object_bytes.iter().copied() {
        let name = short(bytes);
        let (load, key) = (format!("PUT {name}"), format!("put_{name}"));
        let (table, figures, rivals) = ("requests", &[RATE, CPU], &RIVALS);
        bench.run(
            &Case { table, load, key, figures, rivals },
            |tools, one| {
                create_bucket(tools, one.server(tools)?.address, BUCKET, Access::Presigned)
            },
            |tools, one| run(tools, &warp, one.server(tools)?, bytes, options.connections),
        )?;
    }
    Ok(())
}

/// Stores objects of `bytes` bytes for [`NetOptions::time`](crate::options::NetOptions::time).
fn run(
    tools: &Tools<'_>,
    warp: &Path,
    server: &Server,
    bytes: u64,
    connections: usize,
) -> Result<Sample> {
    tools.watcher.check()?;
    let mut command = Command::new(warp);
    command.args(["put", "--json", "--quiet", "--no-color", "--noclear", "--disable-multipart"]);
    command.args(["--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY, "--region", REGION]);
    command.args(["--bucket", BUCKET, "--lookup", "path"]);
    command.arg("--host").arg(server.address.to_string());
    command.arg("--obj.size").arg(format!("{bytes}B"));
    command.arg("--concurrent").arg(connections.to_string());
    command.arg("--duration").arg(format!("{}s", tools.options.time.as_secs()));
    // Without this, warp writes its data into the current directory.
    command.arg("--benchdata").arg(tools.scratch.path().join("warp"));
    let before = server.meter.usage();
    let output = command.stdin(Stdio::null()).output().map_err(Error::other("start warp"))?;
    // The core times include the pauses of warp before and after the load.
    let used = Used { core: None, load_core: None, ..before.until(&server.meter.usage()) };
    let text = String::from_utf8_lossy(&output.stdout);
    let sample = parse(&text).map_err(|why| {
        let error = String::from_utf8_lossy(&output.stderr);
        let last = error.lines().chain(text.lines()).last().unwrap_or("no output");
        Error::Missing(format!("warp failed: {why}: {last}"))
    })?;
    Ok(Sample { used, ..sample })
}

/// Parses the report of warp: an object with `total`, and inside it the number of requests and their
/// time span.
fn parse(report: &str) -> std::result::Result<Sample, String> {
    // Messages may precede the object.
    let begin = report.find("{\n").ok_or("it has no JSON")?;
    let mut values = serde_json::Deserializer::from_str(&report[begin..]).into_iter::<Value>();
    let report = values.next().and_then(|value| value.ok()).ok_or("its JSON is invalid")?;
    let total = &report["total"];
    let number = |key: &str| total[key].as_u64().ok_or_else(|| format!("{key} is missing"));
    let (requests, errors) = (number("total_requests")?, number("total_errors")?);
    if errors > 0 || requests == 0 {
        return Err(format!("{errors} of {requests} requests failed"));
    }
    let time = |key: &str| {
        let text = total[key].as_str().unwrap_or_default();
        OffsetDateTime::parse(text, &Rfc3339).map_err(|why| format!("{key} is invalid: {why}"))
    };
    let wall = time("end_time")? - time("start_time")?;
    let wall = Duration::try_from(wall).map_err(|why| format!("its time is invalid: {why}"))?;
    // Long runs have several segments, whose percentiles cannot be combined.
    let clients = total["requests_by_client"].as_object().into_iter().flatten();
    let segments: Vec<_> =
        clients.flat_map(|(_, it)| it.as_array().into_iter().flatten()).collect();
    let us = |key: &str| match segments[..] {
        [segment] => segment["single_sized_requests"][key].as_f64().map(|ms| 1e3 * ms),
        _ => None,
    };
    let (p50_us, p99_us) = (us("dur_median_millis"), us("dur_99_millis"));
    let bytes = number("total_bytes")?;
    Ok(Sample { wall, requests, bytes, p50_us, p99_us, ..Sample::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The report of a run, shortened.
    const REPORT: &str = r#"
Skipping nothing.
{
  "v": 2,
  "final": true,
  "total": {
    "total_requests": 3208,
    "total_errors": 0,
    "total_bytes": 13139968,
    "start_time": "2026-11-28T19:26:43.240376668Z",
    "end_time": "2026-11-28T19:26:46.24378052Z",
    "throughput": { "measure_duration_millis": 0, "ops": 0 },
    "requests_by_client": {
      "sAK7": [{ "single_sized_requests": { "dur_median_millis": 4.5, "dur_99_millis": 41.25 } }]
    }
  }
}

"#;

    #[test]
    fn report_has_requests_and_their_time() {
        let sample = parse(REPORT).unwrap();
        assert_eq!((sample.requests, sample.bytes), (3208, 13_139_968));
        assert_eq!(sample.wall, Duration::from_nanos(3_003_403_852));
        assert_eq!((sample.p50_us, sample.p99_us), (Some(4500.0), Some(41_250.0)));
        let failed = REPORT.replace("\"total_errors\": 0", "\"total_errors\": 2");
        assert_eq!(parse(&failed).unwrap_err(), "2 of 3208 requests failed");
        assert_eq!(parse("too few samples").unwrap_err(), "it has no JSON");
        let invalid = parse(&REPORT.replace("Z\"", "\"")).unwrap_err();
        assert!(invalid.starts_with("end_time"), "{invalid}");
    }
}
