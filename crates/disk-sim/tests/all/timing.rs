//! Compares the rates that fio reaches with the data sheets. Most tests use the drive's virtual
//! time, because real time includes the overhead of the machine.

use std::process::Command;

use haul_disk_sim::{Options, Parameters, SpinningDisk};
use haul_testing::{run, skip};
use serde_json::Value;

use crate::start;

const BYTES: u64 = 16 << 30;

fn started(parameters: &Parameters, time_scale: f64) -> Option<SpinningDisk> {
    let mut options = Options::new(parameters.clone(), BYTES);
    options.time_scale = time_scale;
    start(&options)
}

/// Runs fio; returns its read statistics, or the reason if it cannot run.
fn fio(disk: &SpinningDisk, job: &[&str]) -> Result<Value, String> {
    let mut fio = Command::new("fio");
    fio.args(["--name=reads", "--readonly", "--direct=1", "--output-format=json"]);
    fio.args(["--ioengine=libaio", &format!("--filename={}", disk.device())]).args(job);
    let report: Value = serde_json::from_str(&run(&mut fio)?).map_err(|error| error.to_string())?;
    Ok(report["jobs"][0]["read"].clone())
}

/// Returns the bytes that fio reads per second of virtual time.
fn virtual_rate(disk: &SpinningDisk, job: &[&str]) -> Option<f64> {
    let before = disk.counters();
    if let Err(why) = fio(disk, job) {
        skip(&why);
        return None;
    }
    let after = disk.counters();
    let bytes = after.bytes_read - before.bytes_read;
    Some(bytes as f64 * 1e9 / (after.service_ns() - before.service_ns()) as f64)
}

#[test]
fn random_read_rate_matches_the_data_sheets() {
    for (parameters, expected) in Parameters::all().into_iter().zip([62.0, 79.0]) {
        let Some(disk) = started(&parameters, 0.0) else { return };
        let job = ["--rw=randread", "--bs=4k", "--iodepth=1", "--number_ios=1500", "--norandommap"];
        let Some(rate) = virtual_rate(&disk, &job) else { return };
        let reads = rate / 4096.0;
        assert!((reads / expected - 1.0).abs() < 0.05, "{}: {reads}", parameters.name);
    }
}

#[test]
fn deep_queue_reaches_the_drive_and_is_faster() {
    for (parameters, at_depth_1) in Parameters::all().into_iter().zip([62.0, 79.0]) {
        let Some(disk) = started(&parameters, 0.1) else { return };
        let job =
            ["--rw=randread", "--bs=4k", "--iodepth=32", "--number_ios=1500", "--norandommap"];
        let Some(rate) = virtual_rate(&disk, &job) else { return };
        assert!(disk.counters().depth_max >= 32, "{:?}", disk.counters());
        let gain = rate / 4096.0 / at_depth_1;
        assert!((1.5..2.5).contains(&gain), "{}: {gain}", parameters.name);
    }
}

#[test]
fn sequential_reads_have_the_rate_of_their_zone() {
    for parameters in Parameters::all() {
        let Some(disk) = started(&parameters, 0.0) else { return };
        let inner = format!("--offset={}", BYTES - (200 << 20));
        for (from, expected) in [
            ("--offset=0", parameters.outer_bytes_per_s),
            (inner.as_str(), parameters.inner_bytes_per_s),
        ] {
            let job = ["--rw=read", "--bs=1M", "--iodepth=1", "--size=100M", from];
            let Some(rate) = virtual_rate(&disk, &job) else { return };
            let part = rate / expected as f64;
            assert!((0.97..1.03).contains(&part), "{}: {part} of {expected}", parameters.name);
        }
    }
}

/// Returns the mean time of random reads at queue depth 1, first in real, then in virtual time.
fn means_ns(disk: &SpinningDisk) -> Option<(f64, f64)> {
    let job = ["--rw=randread", "--bs=4k", "--iodepth=1", "--number_ios=120", "--norandommap"];
    let before = disk.counters();
    let reads = match fio(disk, &job) {
        Ok(reads) => reads,
        Err(why) => {
            skip(&why);
            return None;
        }
    };
    let after = disk.counters();
    let virtual_ns = after.service_ns() - before.service_ns();
    let by_clock_ns = reads["clat_ns"]["mean"].as_f64()?;
    Some((by_clock_ns, virtual_ns as f64 / (after.reads - before.reads) as f64))
}

#[test]
fn unscaled_reads_take_real_time_with_transport_hidden() {
    let mut options = Options::new(Parameters::travelstar_7k320(), BYTES);
    for hides_transport in [false, true] {
        options.hides_transport = hides_transport;
        let Some(disk) = start(&options) else { return };
        let transport_ns = disk.transport().as_nanos() as f64;
        assert_eq!(transport_ns > 0.0, hides_transport);
        let Some((by_clock_ns, virtual_ns)) = means_ns(&disk) else { return };
        println!("{by_clock_ns:.0} ns for {virtual_ns:.0} ns; {transport_ns:.0} ns are hidden");
        // On a busy machine a reply may be later than the model computes. It is never earlier,
        // except by the transport time.
        assert!(by_clock_ns > virtual_ns * 0.97 - transport_ns, "{by_clock_ns} for {virtual_ns}");
        assert!(by_clock_ns < virtual_ns * 3.0, "{by_clock_ns} ns for {virtual_ns} ns");
    }
}
