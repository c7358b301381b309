//! Runs the benchmarks of servers for a second each, and checks the rows of `haul`.

use serde_json::Value;

use crate::work_dir::{WorkDir, report_unless};

/// Returns the report of a short run, or `None` if there is only one core, or no wrk.
fn report(line: &str) -> Option<Value> {
    let haul = haul_testing::program("haul");
    let line = format!("{line} --dir d --rounds 1 --program {}", haul.display());
    report_unless(&line, &["wrk is not installed", "only one is available"])
}

/// Checks that the rows of a load with this server were measured, and returns their settings.
fn settings<'a>(report: &'a Value, load: &str, server: &str, figure: &str) -> Vec<&'a str> {
    let rows = report["rows"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["load"] == load && row["server"] == server);
    rows.map(|row| {
        assert_eq!(row["state"], "measured", "{row}");
        assert!(row[figure].as_f64().unwrap() > 0.0, "{row}");
        row["setting"].as_str().unwrap()
    })
    .collect()
}

fn has_version(report: &Value, program: &str) -> bool {
    let is_installed = report["host"]["versions"].get(program).is_some();
    if !is_installed {
        haul_testing::skip(&format!("{program} is not on PATH"));
    }
    is_installed
}

fn ratio(report: &Value, name: &str) -> f64 {
    report["ratios"][name]["value"].as_f64().unwrap_or_default()
}

#[test]
fn haul_files_is_measured_beside_nginx() {
    let line = "files --only hot,close,tls,cold --connections 4 --rivals nginx --sizes 1000 \
                --files 20 --big 2MiB --big-files 3";
    let Some(report) = report(line) else { return };
    let copy = "--cold copy";
    let again = "--cold copy, again";
    for load in ["1000 x 4, hot", "1000 x 4, close"] {
        assert_eq!(settings(&report, load, "haul", "cpu_us"), [copy, again]);
    }
    assert_eq!(settings(&report, "1000 x 4, tls", "haul", "cpu_us"), ["TLS", "TLS, again"]);
    let cold = settings(&report, "cold", "haul", "cpu_s_per_gb");
    assert_eq!(cold, [copy, again, "--cold splice"]);
    if !has_version(&report, "nginx") {
        return;
    }
    let sendfile = "sendfile, tcp_nopush";
    assert_eq!(settings(&report, "1000 x 4, hot", "nginx", "requests_per_s"), [sendfile]);
    let cold = settings(&report, "cold", "nginx", "cpu_s_per_gb");
    assert_eq!(cold, [sendfile, "sendfile, aio threads", "directio 1m, aio threads"]);
    // Direct reads leave nothing in the page cache, and sendfile leaves the files. The kernel may
    // reclaim some of the pages at any time.
    let rows = report["rows"].as_array().unwrap().iter().filter(|row| row["load"] == "cold");
    for row in rows {
        let cached = row["cached_percent"].as_f64().unwrap();
        match row["setting"].as_str().unwrap() {
            setting if setting.starts_with("sendfile") => assert!(cached > 75.0, "{row}"),
            _ => assert!(cached < 5.0, "{row}"),
        }
    }
    for name in ["hot_1000_x4_cpu_vs_nginx_sendfile", "close_1000_x4_rate_vs_nginx_sendfile"] {
        assert!(ratio(&report, name) > 0.0, "{name}: {}", report["ratios"]);
    }
}

#[test]
#[ignore = "full: it loads servers for half a minute"]
fn latency_of_hot_files_is_measured_during_downloads() {
    let line = "files --only latency --rivals haul --memory 48MiB --big 2MiB --big-files 3 \
                --connections 4";
    let Some(report) = report(line) else { return };
    if report["rows"].as_array().unwrap().is_empty() {
        return haul_testing::skip("there is no memory cgroup");
    }
    for load in ["at rest", "beside downloads"] {
        let settings = settings(&report, load, "haul", "p99_us");
        assert_eq!(settings, ["--cold copy", "--cold copy, again", "--cold splice"]);
    }
    assert!(ratio(&report, "hot_during_cold_p99_noise") > 0.0);
}

#[test]
#[ignore = "full: it loads servers for half a minute"]
fn haul_serve_is_measured_anonymous_and_presigned() {
    let Some(report) = report("serve --connections 4 --sizes 4KiB,5MiB") else { return };
    let serve = ["serve, anonymous", "serve, anonymous, again"];
    for load in ["GET 4k", "GET 5m"] {
        let found = settings(&report, load, "haul", "cpu_us");
        assert_eq!(found, [serve[0], serve[1], "serve, presigned", "files"]);
    }
    for load in ["PUT 4k, new keys", "PUT 4k, overwrites"] {
        let found = settings(&report, load, "haul", "requests_per_s");
        let [hash, chunks] = ["serve, signed hash", "serve, signed chunks"];
        let [trailer, tls] = ["serve, signed chunks, trailer", "serve, unsigned chunks, TLS"];
        assert_eq!(found, [serve[0], serve[1], hash, chunks, trailer, tls, "Store::put"]);
    }
    for name in ["get_4k_cpu_vs_files", "put_4k_overwrite_cpu_vs_store", "get_5m_cpu_noise"] {
        assert!(ratio(&report, name) > 0.0, "{name}: {}", report["ratios"]);
    }
}

#[test]
#[ignore = "full: it loads servers for half a minute"]
fn haul_serve_is_measured_as_an_s3_server() {
    let line = "s3 --only get,list --connections 4 --sizes 4KiB --list-keys 2500";
    let Some(report) = report(line) else { return };
    for load in ["GET 4k", "LIST 2500 keys"] {
        let found = settings(&report, load, "haul", "requests_per_s");
        assert_eq!(found, ["serve, synced", "serve, synced, again"]);
    }
}

#[test]
#[ignore = "full: it loads servers for half a minute"]
fn haul_relay_is_measured_in_each_move_mode() {
    let line = "relay --sizes 200KiB --flows 3 --rivals haproxy,nginx";
    let Some(report) = report(line) else { return };
    let modes = ["auto", "auto, again", "copy", "splice"];
    assert_eq!(settings(&report, "3 flows", "haul", "cpu_s_per_gb"), modes);
    for load in ["messages, 200k", "connections, 200k"] {
        assert_eq!(settings(&report, load, "haul", "cpu_us"), modes);
    }
    assert_eq!(settings(&report, "http, 200k", "haul", "cpu_us"), ["--http", "--http, again"]);
    for row in report["rows"].as_array().unwrap() {
        assert!(row["state"] == "measured" || row["server"] == "nginx", "{row}");
        if row["load"] == "idle" && row["server"] == "haul" {
            assert_eq!(row["descriptors"], 2, "{row}");
        }
    }
    if has_version(&report, "haproxy") {
        let found = settings(&report, "http, 200k", "haproxy", "cpu_us");
        assert_eq!(found, ["mode http, splice"]);
        assert!(ratio(&report, "bulk_3_cpu_per_gb_vs_haproxy_splice") > 0.0);
    }
}

#[test]
fn missing_programs_are_errors() {
    let place = WorkDir::new();
    for wrong in ["relay --compare", "relay --program", "files --program", "serve --program"] {
        let ended = place.run_line(&format!("{wrong} nowhere --dir ."));
        ended.code(1).stderr_contains(&["cannot find the program nowhere"]);
    }
    let error = place.run_line("files --dir . --program /bin/false --only hot").code(1).stderr();
    let expected = ["haul ended", "wrk is not installed", "only one is available"];
    assert!(expected.iter().any(|part| error.contains(part)), "{error}");
    assert_eq!(std::fs::read_dir(place.path(".")).unwrap().count(), 0, "left behind");
}
