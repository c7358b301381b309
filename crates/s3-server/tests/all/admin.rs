//! The admin address.

use std::time::Duration;

use haul_s3_server::{Credentials, Limits};
use serde_json::Value;

use crate::client::Running;

#[test]
fn page_loads_only_files_of_the_admin_address() {
    let server = Running::new();
    let page = server.admin.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'; script-src 'self'; style-src 'self'; "));
    let text = page.text();
    let attributes = text.split(['"', ' ']).filter(|word| word.starts_with("/"));
    let files: Vec<_> = attributes.filter(|word| word.ends_with("s")).collect();
    assert!(files.len() >= 4, "{files:?}");
    for path in files {
        let file = server.admin.get(path);
        assert_eq!(file.status, 200, "{path}");
        for outside in ["https://", "@import", "url(", "innerHTML"] {
            assert!(!file.text().contains(outside), "{path} has {outside}");
        }
    }
    assert_eq!(server.admin.get("/console.jsx").status, 404);
}

#[test]
fn history_has_the_current_values() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"hello");
    server.s3.get("/bucket/gone");
    let history = server.admin.get("/history.json?span=now");
    assert_eq!(history.header("content-type"), Some("application/json"));
    let history: Value = serde_json::from_slice(&history.body).unwrap();
    let total = |name: &str| {
        let series = history["series"].as_array().unwrap();
        let at = series.iter().position(|series| series["name"] == name).unwrap();
        history["totals"][at].as_u64().unwrap()
    };
    let values = ["put", "get", "received", "refused (4xx)", "objects"].map(total);
    assert_eq!(values, [1, 1, 5, 1, 1]);
    assert_eq!(history["latencies"], serde_json::json!(["Latency", "Sync latency"]));
    for query in ["", "?span=hour", "?span=day"] {
        let history = server.admin.get(&format!("/history.json{query}"));
        let history: Value = serde_json::from_slice(&history.body).unwrap();
        assert!(history["rows"].is_array());
    }
    assert_eq!(server.admin.get("/history.json?span=week").status, 400);
}

#[test]
fn statistics_count_requests() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"hello");
    server.s3.get("/bucket/key");
    server.s3.get("/bucket/gone");
    server.s3.get("/bucket?list-type=2");
    let stats = server.admin.get("/stats.json");
    let stats: Value = serde_json::from_slice(&stats.body).unwrap();
    assert_eq!(stats["store"]["objects"], 1);
    assert_eq!(stats["store"]["object_bytes"], 5);
    assert_eq!(stats["received_bytes"], 5);
    assert!(stats["free_bytes"].as_u64().unwrap() > 0);
    assert!(stats["file_system_bytes"].as_u64() > stats["free_bytes"].as_u64());
    assert!(stats["store"]["free_bytes"].as_u64().unwrap() > 0);
    assert!(stats["store"]["live_volume_bytes"].as_u64().unwrap() > 0);
    assert_eq!(stats["store"]["dead_volume_bytes"], 0);
    let get = stats["requests"].as_array().unwrap().iter().find(|kind| kind["kind"] == "get");
    assert_eq!(get.unwrap()["by_status"], serde_json::json!([0, 1, 0, 1, 0]));

    let metrics = server.admin.get("/metrics");
    assert!(metrics.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let text = metrics.text();
    for line in [
        "haul_objects 1",
        "haul_received_bytes_total 5",
        "haul_requests_total{kind=\"put\",status=\"2xx\"} 1",
        "haul_requests_total{kind=\"get\",status=\"4xx\"} 1",
        "haul_requests_total{kind=\"list\",status=\"2xx\"} 1",
        "haul_request_duration_seconds_count{kind=\"get\"} 2",
        "haul_latched 0",
        "haul_volume_dead_bytes 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[test]
fn deleted_object_turns_live_bytes_into_dead_bytes() {
    let server = Running::new();
    server.s3.put("/bucket/key", &[7; 10_000]);
    let store = || {
        let stats = server.admin.get("/stats.json");
        let stats: Value = serde_json::from_slice(&stats.body).unwrap();
        let bytes = |name: &str| stats["store"][name].as_u64().unwrap();
        (bytes("live_volume_bytes"), bytes("dead_volume_bytes"))
    };
    let (live_before, dead_before) = store();
    server.s3.delete("/bucket/key");
    let (live, dead) = store();
    assert_eq!(live_before - live, dead - dead_before);
    assert!(dead >= 10_000, "{dead}");
}

#[test]
fn pages_of_the_admin_address_are_read_only() {
    let server = Running::new();
    let health = server.admin.get("/health");
    assert_eq!((health.status, health.text().as_str()), (200, "ok\n"));
    let ready = server.admin.get("/ready");
    assert_eq!((ready.status, ready.text().as_str()), (200, "ok\n"));
    let metrics = server.admin.get("/metrics");
    assert!(metrics.text().contains("\nprocess_start_time_seconds "));
    assert_eq!(server.admin.get("/bucket/key").status, 404);
    assert_eq!(server.admin.put("/", b"").status, 405);
    assert_eq!(server.admin.head("/").status, 200);
    let elsewhere = [("host", "evil.example")];
    for path in ["/stats.json", "/history.json", "/requests.json", "/buckets.json", "/s3/bucket"] {
        assert_eq!(server.admin.send("GET", path, &elsewhere, b"").status, 403, "{path}");
    }
}

fn requests(server: &Running, class: &str) -> Vec<Value> {
    let json: Value = serde_json::from_slice(&server.admin.get("/requests.json").body).unwrap();
    json[class].as_array().unwrap().clone()
}

#[test]
fn refused_requests_are_listed_with_their_error() {
    let server = Running::new();
    server.s3.put("/bucket/key", b"hello");
    let reply = server.s3.get("/bucket/a%20gone?versionId=null&X-Amz-Signature=secret");
    assert_eq!(reply.status, 404);
    let refused = requests(&server, "refused");
    assert_eq!(refused.len(), 1, "{refused:?}");
    let request = &refused[0];
    assert_eq!(request["path"], "/bucket/a%20gone", "without the query");
    assert_eq!((&request["kind"], &request["status"]), (&"get".into(), &404.into()));
    assert!(request["code"].as_str().unwrap().starts_with("NoSuch"), "{request}");
    assert_eq!(request["id"].as_str(), reply.header("x-amz-request-id"));
    assert!(request["duration_ms"].as_f64() >= request["answering_ms"].as_f64());
    assert!(requests(&server, "failed").is_empty() && requests(&server, "slow").is_empty());
}

#[test]
fn slow_requests_are_listed() {
    let limits = Limits { slow_request_time: Some(Duration::ZERO), ..Limits::default() };
    let server = Running::with(None, limits);
    server.s3.put("/bucket", b"");
    server.s3.put("/bucket/key", b"hello");
    let paths: Vec<_> = requests(&server, "slow").iter().map(|one| one["path"].clone()).collect();
    assert_eq!(paths, ["/bucket/key", "/bucket"]);
    let json: Value = serde_json::from_slice(&server.admin.get("/requests.json").body).unwrap();
    assert_eq!(json["slow_request_ms"], 0.0);
}

/// The header with which the console shows that no page of another origin sends the request.
const CONSOLE: (&str, &str) = ("x-haul-console", "1");

#[test]
fn console_stores_lists_reads_and_deletes_objects() {
    let server = Running::new();
    let send =
        |method: &str, path: &str, body: &[u8]| server.admin.send(method, path, &[CONSOLE], body);
    assert_eq!(send("PUT", "/s3/bucket/a%2F..%2Fb%20c", b"hello").status, 200);
    assert_eq!(
        server.s3.get("/bucket?list-type=2").text().matches("<Key>a/../b c</Key>").count(),
        1
    );
    let object = send("GET", "/s3/bucket/a%2F..%2Fb%20c", b"");
    assert_eq!((object.status, &*object.text()), (200, "hello"));
    for (name, value) in [
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("content-disposition", "attachment"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(object.header(name), Some(value), "a stored page does not run: {name}");
    }
    let list = send("GET", "/s3/bucket?list-type=2&delimiter=/", b"").text();
    assert!(list.contains("<Prefix>a/</Prefix>"), "{list}");
    assert!(send("GET", "/s3/", b"").text().contains("<Name>bucket</Name>"));
    assert_eq!(send("DELETE", "/s3/bucket/a%2F..%2Fb%20c", b"").status, 204);
    assert_eq!(send("GET", "/s3/bucket/a%2F..%2Fb%20c", b"").status, 404);
    let buckets: Value = serde_json::from_slice(&server.admin.get("/buckets.json").body).unwrap();
    let expected = serde_json::json!([
        {
            "name": "bucket", "objects": 0, "bytes": 0, "versioning": "off", "quota_bytes": null,
            "quota_objects": null, "used_bytes": 0, "used_objects": 0,
        }
    ]);
    assert_eq!(buckets, expected);
}

#[test]
fn console_refuses_changes_by_pages_of_other_origins() {
    let server = Running::new();
    let origin = |origin: &'static str| [CONSOLE, ("origin", origin)];
    for headers in [
        vec![],
        origin("http://evil.example").into(),
        origin("null").into(),
        vec![CONSOLE, ("sec-fetch-site", "cross-site")],
        vec![CONSOLE, ("host", "evil.example")],
    ] {
        let reply = server.admin.send("PUT", "/s3/bucket/key", &headers, b"evil");
        assert_eq!(reply.status, 403, "{headers:?}");
    }
    let cross = [("sec-fetch-site", "cross-site")];
    assert_eq!(server.admin.send("GET", "/s3/bucket?list-type=2", &cross, b"").status, 403);
    assert_eq!(server.s3.get("/bucket/key").status, 404);
    let preflight = server.admin.send("OPTIONS", "/s3/bucket/key", &[CONSOLE], b"");
    assert_eq!(preflight.header("access-control-allow-origin"), None);
    assert!(preflight.status >= 400, "{}", preflight.status);
}

#[test]
fn map_of_volumes_shows_live_and_dead_bytes() {
    if crate::client::needs_one_directory() {
        return;
    }
    let server = Running::new();
    (0..40).for_each(|at| drop(server.s3.put(&format!("/bucket/{at}"), &[7; 10_000])));
    (0..20).for_each(|at| drop(server.s3.delete(&format!("/bucket/{at}"))));
    let map = server.admin.get("/volumes.json");
    assert_eq!(map.status, 200, "{}", map.text());
    let map: Value = serde_json::from_slice(&map.body).unwrap();
    let stats: Value = serde_json::from_slice(&server.admin.get("/stats.json").body).unwrap();
    let sum = |name: &str| -> u64 {
        map.as_array().unwrap().iter().map(|volume| volume[name].as_u64().unwrap()).sum()
    };
    assert_eq!(stats["store"]["live_volume_bytes"], sum("live_bytes"));
    assert!(sum("dead_bytes") >= 200_000, "{map}");
    let cells = map[0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 64);
    for cell in [8.into(), 1.into(), Value::Null] {
        assert!(cells.contains(&cell), "live, mostly dead and empty parts: {cells:?}");
    }
    let cross = [("sec-fetch-site", "cross-site")];
    assert_eq!(server.admin.send("GET", "/volumes.json", &cross, b"").status, 403);
}

#[test]
fn server_without_keys_lists_none() {
    let server = Running::new();
    let json: Value = serde_json::from_slice(&server.admin.get("/keys.json").body).unwrap();
    assert_eq!((&json["keys"], &json["login"]), (&serde_json::json!([]), &Value::Null));
    assert!(json["read_only_reason"].as_str().unwrap().contains("has no keys"), "{json}");
}

#[test]
fn health_is_asked_at_the_s3_address_too() {
    let credentials = Credentials { access_key: "AK".into(), secret_key: "secret-secret".into() };
    let server = Running::with(Some(credentials), Limits::default());
    let ask = |method: &str, target: &str| {
        let fields = "Host: localhost\r\nConnection: close\r\n";
        let head = format!("{method} {target} HTTP/1.1\r\n{fields}\r\n");
        server.s3.raw(head.as_bytes()).status
    };
    for path in ["live", "ready", "cluster", "cluster/read"] {
        for method in ["GET", "HEAD"] {
            assert_eq!(ask(method, &format!("/minio/health/{path}")), 200, "{method} {path}");
        }
    }
    assert_eq!([ask("GET", "/health"), ask("HEAD", "/health")], [200, 200]);
    // Nothing else is answered without a signature.
    for (method, target) in [
        ("PUT", "/minio/health/live"),
        ("GET", "/minio/health/live?tagging"),
        ("GET", "/minio/health"),
        ("GET", "/health/live"),
        ("GET", "/health?list-type=2"),
        ("DELETE", "/health"),
    ] {
        let status = ask(method, target);
        assert!(matches!(status, 403 | 404), "{method} {target}: {status}");
    }
    // A bucket of this name has precedence.
    let server = Running::new();
    assert_eq!(server.s3.get("/minio/health/live").body, b"ok\n");
    assert_eq!(server.s3.put("/minio", b"").status, 200);
    assert_eq!(server.s3.get("/minio/health/live").status, 404);
    assert_eq!(server.s3.put("/minio/health/live", b"object").status, 200);
    assert_eq!(server.s3.get("/minio/health/live").body, b"object");
}
