//! Tests `haul keys`, and the key file of a running server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use haul_testing::eventually;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::helper::{Finished, Serving, TestDir};

const FILES: [&str; 4] = ["--keys", "haul-keys.json", "--sealing-key", "haul-sealing-key"];

/// A directory with a key file.
fn place() -> TestDir {
    let place = TestDir::new();
    keys(&place, &["init"]).code(0);
    place
}

fn keys(place: &TestDir, arguments: &[&str]) -> Finished {
    place.run(&[&["keys"], arguments].concat())
}

/// Returns the output of a command that succeeds.
fn printed(place: &TestDir, arguments: &[&str]) -> String {
    keys(place, arguments).code(0).text().to_owned()
}

fn object(ended: &Finished) -> Value {
    serde_json::from_str(ended.text()).unwrap_or_else(|_| panic!("{}", ended.text()))
}

/// Creates a key and returns its access key.
fn create(place: &TestDir, arguments: &[&str]) -> String {
    let ended = keys(place, &[&["create", "--json"], arguments].concat()).code(0);
    object(&ended)["access_key"].as_str().unwrap().to_owned()
}

#[test]
fn keys_are_created_listed_changed_and_removed() {
    let place = place();
    assert_eq!(printed(&place, &["list"]), "");
    let created = keys(
        &place,
        &["create", "alice", "--allow", "read,list=photos/2026/", "--allow", "create-buckets"],
    );
    let created = created.code(0).stderr_contains(&["not shown again", "within a second"]);
    let lines = created.lines();
    assert_eq!(lines[0], "# alice: read,list photos/2026/; create-buckets");
    let access = lines[1].strip_prefix("access_key = ").unwrap().to_owned();
    let secret = lines[2].strip_prefix("secret_key = ").unwrap().to_owned();
    assert_eq!((access.len(), secret.len()), (20, 40));
    let file = fs::read_to_string(place.path("haul-keys.json")).unwrap();
    assert!(file.contains(&access) && !file.contains(&secret));

    let shown = keys(&place, &["show", &access, "--json"]).code(0);
    let mut shown = object(&shown);
    assert!(shown.as_object_mut().unwrap().remove("created").unwrap().is_string());
    let expected = json!({
        "access_key": access, "user": "alice", "state": "active", "expires": null,
        "rights": [{ "bucket": "photos", "prefix": "2026/", "rights": ["read", "list"] }],
        "create_buckets": true, "metrics": false,
    });
    assert_eq!(shown, expected);
    keys(&place, &["allow", &access, "write,delete", "photos"]).code(0);
    keys(&place, &["allow", &access, "metrics"]).code(0);
    keys(&place, &["forbid", &access, "create-buckets"]).code(0);
    let text = keys(&place, &["show", &access]).code(0).text().to_owned();
    assert!(text.contains("rights      read,list photos/2026/\n"), "{text}");
    assert!(text.contains("            write,delete photos\n            metrics"), "{text}");
    assert!(!text.contains("create-buckets") && !text.contains(&secret), "{text}");
    keys(&place, &["forbid", &access, "read,list,write", "photos"]).code(0);
    let line = format!("{access}  active    alice: delete photos; metrics\n");
    assert_eq!(printed(&place, &["list"]), line);
    keys(&place, &["disable", &access]).code(0).stderr_contains(&["within a second"]);
    assert_eq!(printed(&place, &["list"]), line.replace("active  ", "disabled"));
    keys(&place, &["enable", &access]).code(0);
    assert_eq!(printed(&place, &["list"]), line);
    keys(&place, &["allow", "anonymous", "read", "public"]).code(0);
    assert_eq!(printed(&place, &["list"]), format!("{line}anonymous: read public\n"));
    keys(&place, &["forbid", "anonymous", "read", "*"]).code(0);
    assert_eq!(printed(&place, &["show", "anonymous"]), "anonymous: no rights\n");
    keys(&place, &["remove", &access]).code(0);
    assert_eq!(printed(&place, &["list"]), "");
}

#[test]
fn expired_and_rotated_keys_are_shown() {
    let place = place();
    let old = create(&place, &["alice", "--allow", "admin=photos", "--expires-in", "0s"]);
    let state = |access: &str| object(&keys(&place, &["show", access, "--json"]))["state"].clone();
    assert_eq!(state(&old), "expired");
    let old = create(&place, &["alice", "--allow", "admin=photos", "--allow", "metrics"]);
    let rotated = keys(&place, &["rotate", &old, "--json"]).code(0);
    let rotated = rotated.stderr_contains(&[&format!("{old} is accepted until 20")]);
    let new = object(&rotated);
    assert_eq!(
        (&new["user"], &new["metrics"], &new["expires"]),
        (&json!("alice"), &json!(true), &json!(null))
    );
    let rights = json!([{ "bucket": "photos", "prefix": "", "rights": ["admin"] }]);
    assert_eq!((state(&old), &new["rights"]), (json!("active"), &rights));
    let new = new["access_key"].as_str().unwrap();
    keys(&place, &["rotate", new, "--overlap", "0s"]).code(0);
    assert_eq!(state(new), "expired");
}

#[test]
fn forbid_reports_broader_grants_that_remain() {
    let place = place();
    let access = create(&place, &["alice", "--allow", "read=photos", "--allow", "write=photos/a/"]);
    let before = fs::read(place.path("haul-keys.json")).unwrap();
    let grant = json!({ "bucket": "photos", "prefix": "", "rights": ["read"] });

    let unchanged = keys(&place, &["forbid", &access, "read", "photos/a/", "--json"]).code(1);
    let unchanged = unchanged.stderr_contains(&[
        &format!("{access} has no grant of read within photos/a/: nothing was changed"),
        "read remains through the grant read photos",
    ]);
    let expected = json!({ "access_key": access, "change": null, "remaining": [grant] });
    assert_eq!(object(&unchanged), expected);
    let none = keys(&place, &["forbid", &access, "delete", "photos", "--json"]).code(1);
    let none = none.stderr_contains(&["has no such rights", "its rights: read photos; write"]);
    assert_eq!(object(&none)["remaining"], json!([]));
    assert_eq!(fs::read(place.path("haul-keys.json")).unwrap(), before);

    let partly = keys(&place, &["forbid", &access, "read,write", "photos/a/", "--json"]).code(0);
    let partly = partly.stderr_contains(&["haul: read remains through the grant read photos\n"]);
    let expected = json!({ "access_key": access, "change": "forbidden", "remaining": [grant] });
    assert_eq!(object(&partly), expected);
    let removed = keys(&place, &["forbid", &access, "read", "photos", "--json"]).code(0);
    assert_eq!(object(&removed)["remaining"], json!([]));

    for (code, change) in [(0, json!("forbidden")), (1, json!(null))] {
        if code == 0 {
            keys(&place, &["allow", &access, "metrics"]).code(0);
        }
        let metrics = keys(&place, &["forbid", &access, "metrics", "--json"]).code(code);
        let expected = json!({ "access_key": access, "change": change, "remaining": [] });
        assert_eq!(object(&metrics), expected);
    }

    // The right admin includes the others; all buckets include each bucket.
    keys(&place, &["allow", &access, "admin", "photos"]).code(0);
    let admin = keys(&place, &["forbid", &access, "read,list", "photos/a/"]).code(1);
    admin.stderr_contains(&["read,list remain through the grant admin photos"]);
    keys(&place, &["allow", "anonymous", "read", "*"]).code(0);
    let anonymous = keys(&place, &["forbid", "anonymous", "read", "photos"]).code(1);
    anonymous.stderr_contains(&["read remains through the grant read *"]);
}

#[test]
fn refused_keys_are_not_rotated() {
    let place = place();
    let disabled = create(&place, &["alice"]);
    keys(&place, &["disable", &disabled]).code(0);
    let expired = create(&place, &["bob", "--expires-in", "0s"]);
    let both = create(&place, &["carol", "--expires-in", "0s"]);
    keys(&place, &["disable", &both]).code(0);
    let before = fs::read(place.path("haul-keys.json")).unwrap();
    let enable = format!("\"haul keys enable {disabled}\" enables it");
    for (access, state, advice) in [
        (&disabled, "is disabled: nothing was changed", &*enable),
        (&disabled, "is disabled", "\"haul keys create alice\" creates a new key"),
        (&expired, "expired at 20", "\"haul keys create bob\" creates a new key"),
        (&both, "expired at 20", "\"haul keys create carol\" creates a new key"),
    ] {
        let refused = keys(&place, &["rotate", access]).code(1);
        assert_eq!(refused.text(), "", "no secret key is printed");
        refused.stderr_contains(&[&format!("{access} {state}"), advice]);
        assert_eq!(fs::read(place.path("haul-keys.json")).unwrap(), before, "{access}");
    }
    keys(&place, &["enable", &disabled]).code(0);
    keys(&place, &["rotate", &disabled]).code(0);
}

#[test]
fn policies_are_added_attached_shown_and_removed() {
    let place = place();
    let ann = create(&place, &["ann"]);
    create(&place, &["ben"]);
    let text = r#"{"Statement": {"Effect": "Allow", "Action": "s3:GetObject",
  "Resource": "arn:aws:s3:::photos/*"}}"#;
    fs::write(place.path("read.json"), text).unwrap();
    let ended = keys(&place, &["policy", "put", "read", "read.json"]).code(0);
    assert_eq!(ended.stderr_contains(&["within a second"]).text(), "added: policy read\n");
    let again = printed(&place, &["policy", "put", "read", "read.json"]);
    assert_eq!(again, "replaced: policy read\n");
    assert_eq!(printed(&place, &["policy", "show", "read"]), format!("{text}\n"));
    assert_eq!(printed(&place, &["policy", "list"]), "read: users none; groups none\n");
    let attach = ["policy", "attach", "read", "--user", "ann"];
    assert_eq!(printed(&place, &attach), "attached: policy read, user ann\n");
    let added = printed(&place, &["group", "add", "staff", "ann", "ben"]);
    assert_eq!(added, "added: group staff, users ann, ben\n");
    let ended = keys(&place, &["policy", "attach", "read", "--group", "staff", "--json"]).code(0);
    let expected =
        json!({ "policy": "read", "change": "attached", "user": null, "group": "staff" });
    assert_eq!(object(&ended), expected);
    assert_eq!(printed(&place, &["policy", "list"]), "read: users ann; groups staff\n");
    assert_eq!(printed(&place, &["group", "ls"]), "staff: users ann, ben; policies read\n");
    let group = object(&keys(&place, &["group", "list", "staff", "--json"]).code(0));
    assert_eq!(group, json!({ "group": "staff", "users": ["ann", "ben"], "policies": ["read"] }));
    assert!(printed(&place, &["show", &ann]).ends_with("\npolicies    read\n"));
    let refused = keys(&place, &["policy", "rm", "read"]).code(1);
    refused.stderr_contains(&["is attached to the user ann, the group staff", "detach it first"]);
    keys(&place, &["policy", "detach", "read", "--user", "ann"]).code(0);
    keys(&place, &["policy", "detach", "read", "--user", "ann"])
        .code(1)
        .stderr_contains(&["user ann does not have the policy read"]);
    keys(&place, &["policy", "detach", "read", "--group", "staff"]).code(0);
    assert_eq!(printed(&place, &["policy", "rm", "read"]), "removed: policy read\n");
    keys(&place, &["group", "rm", "staff", "ann", "ben"]).code(0);
    assert_eq!(printed(&place, &["group", "list"]), "");
}

#[test]
fn mistakes_with_policies_have_exit_codes_and_reasons() {
    let place = place();
    create(&place, &["ann"]);
    let principal = r#"{"Statement": {"Effect": "Deny", "Action": "s3:*", "Principal": "*",
        "Resource": "*"}}"#;
    fs::write(place.path("bucket.json"), principal).unwrap();
    fs::write(place.path("all.json"), principal.replace(r#""Principal": "*","#, "")).unwrap();
    keys(&place, &["policy", "put", "all", "all.json"]).code(0);
    for (arguments, code, reason) in [
        (&["policy", "put", "a", "bucket.json"][..], 2, "neither Principal nor NotPrincipal"),
        (&["policy", "put", "a b", "all.json"], 2, "cannot be a policy"),
        (&["policy", "put", "a", "none"], 3, "cannot read the policy in none"),
        (&["policy", "show", "a"], 1, "there is no policy a"),
        (&["policy", "rm", "a"], 1, "there is no policy a"),
        (&["policy", "attach", "a", "--user", "ann"], 1, "there is no policy a"),
        (&["policy", "attach", "all", "--user", "amn"], 1, "there is no user amn"),
        (&["policy", "attach", "all", "--group", "staff"], 1, "there is no group staff"),
        (&["policy", "attach", "all", "--group", "staff"], 1, "haul keys group add staff USER"),
        (&["policy", "attach", "all"], 2, "--user"),
        (&["policy", "attach", "all", "--user", "ann", "--group", "g"], 2, "cannot be used with"),
        (&["group", "add", "g", "amn"], 1, "there is no user amn"),
        (&["group", "add", "a b", "ann"], 2, "cannot be a group"),
        (&["group", "rm", "g", "ann"], 1, "has none of these users"),
        (&["group", "list", "g"], 1, "there is no group g"),
    ] {
        keys(&place, arguments).code(code).stderr_contains(&[reason]);
    }
}

#[test]
fn mistakes_have_exit_codes_and_reasons() {
    let place = place();
    let access = create(&place, &["alice", "--allow", "read=photos/a/"]);
    let before = fs::read(place.path("haul-keys.json")).unwrap();
    for (arguments, code, text) in [
        (&["init"][..], 3, "the file exists"),
        (&["create", "a b"], 2, "cannot be a user"),
        (&["create", "haul"], 2, "reserved"),
        (&["create", "bob", "--allow", "reed=photos"], 2, "\"reed\" is no right"),
        (&["create", "bob", "--allow", "read"], 2, "read needs a bucket"),
        (&["create", "bob", "--allow", "admin=photos/a"], 2, "a right to a whole bucket"),
        (&["allow", &access, "read"], 2, "read needs a bucket"),
        (&["allow", &access, "metrics", "photos"], 2, "without a bucket"),
        (&["allow", &access, "read", "Photos"], 2, "cannot be the name of a bucket"),
        (&["allow", "HAULNONE", "read", "photos"], 1, "there is no key HAULNONE"),
        (&["allow", "anonymous", "write", "photos"], 2, "read and list only"),
        (&["allow", "anonymous", "metrics"], 2, "read and list only"),
        (&["forbid", &access, "write", "photos"], 1, "its rights: read photos/a/"),
        (&["forbid", &access, "metrics"], 1, "has no such rights"),
        (&["forbid", "anonymous", "read", "photos"], 1, "has no such rights"),
        (&["show", "HAULNONE"], 1, "there is no key"),
        (&["remove", "HAULNONE"], 1, "there is no key"),
        (&["rotate", "HAULNONE"], 1, "there is no key"),
        (&["list", "--keys", "none"], 3, "none"),
        (&["list", "--sealing-key", "none"], 3, "none"),
        (&["list", "--sealing-key", "haul-keys.json"], 3, "no sealing key"),
    ] {
        keys(&place, arguments).code(code).stderr_contains(&[text]);
        assert_eq!(fs::read(place.path("haul-keys.json")).unwrap(), before, "{arguments:?}");
    }
    keys(&place, &["init", "--keys", "other", "--sealing-key", "other-seal"]).code(0);
    let wrong = keys(&place, &["list", "--sealing-key", "other-seal"]).code(3);
    wrong.stderr_contains(&["has another sealing key"]);
    let mut changed = before.clone();
    let at = changed.windows(6).position(|window| window == b"photos").unwrap();
    changed[at] = b'P';
    place.write("haul-keys.json", &changed);
    keys(&place, &["list"]).code(3).stderr_contains(&["changed by another program"]);
    place.write("haul-keys.json", &before[..before.len() / 2]);
    keys(&place, &["list"]).code(3).stderr_contains(&["damaged"]);
    place.write("haul-keys.json", &before);
    fs::set_permissions(place.path("haul-keys.json"), fs::Permissions::from_mode(0o644)).unwrap();
    keys(&place, &["list"]).code(3).stderr_contains(&["accessible to other users", "chmod"]);
}

#[test]
fn key_file_of_a_killed_change_is_complete() {
    let place = place();
    let (mut acknowledged, mut killed) = (Vec::new(), 0);
    for round in 0..40_u64 {
        let user = format!("user-{round}");
        let mut command = place.command(&["keys", "create", &user]);
        let mut child = command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Each round kills at another moment; the first rounds kill at once.
        let end = Instant::now() + Duration::from_micros(round * 500);
        while Instant::now() < end && child.try_wait().unwrap().is_none() {}
        child.kill().ok();
        match child.wait().unwrap().success() {
            true => acknowledged.push(user),
            false => killed += 1,
        }
        let listed = keys(&place, &["list"]).code(0).text().to_owned();
        for user in &acknowledged {
            assert!(listed.contains(&format!("{user}: ")), "{user} is not in {listed}");
        }
    }
    println!("{killed} of 40 changes were killed");
    assert!(killed > 0);
    create(&place, &["last"]);
}

fn serve(place: &TestDir) -> Serving {
    place.run(&["store", "mb", "b-1"]).code(0);
    place.run_with(&["store", "put", "b-1/public/key"], b"hello").code(0);
    let start = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    TestDir::start(&mut place.command(&[&start[..], &FILES].concat()))
}

fn admin_page(serving: &Serving, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(serving.address("admin")).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn running_server_applies_changes_of_the_key_file() {
    let place = place();
    let mut serving = serve(&place);
    let status = || serving.request("GET", "/b-1/public/key", b"").0;
    assert_eq!(status(), 403);
    keys(&place, &["allow", "anonymous", "read", "b-1/public/"]).code(0);
    eventually("the change is applied", || status() == 200);
    assert!(serving.stderr_line().contains("key file reloaded: 0 keys"));

    // A file that is invalid changes nothing.
    let valid = fs::read(place.path("haul-keys.json")).unwrap();
    let degraded = |serving: &Serving| admin_page(serving, "/health").contains("degraded: ");
    for invalid in [&valid[..valid.len() / 2], b"", b"{}"] {
        place.write("haul-keys.json", invalid);
        eventually("the file is reported", || degraded(&serving));
        while !serving.stderr_line().contains("the keys of before remain in force") {}
        assert_eq!(serving.request("GET", "/b-1/public/key", b"").0, 200);
        assert!(admin_page(&serving, "/metrics").contains("\nhaul_key_file_failing 1\n"));
        place.write("haul-keys.json", &valid);
        eventually("the file is valid again", || !degraded(&serving));
        while !serving.stderr_line().contains("key file reloaded") {}
    }
    fs::remove_file(place.path("haul-keys.json")).unwrap();
    eventually("the file is reported", || degraded(&serving));
    assert_eq!(serving.request("GET", "/b-1/public/key", b"").0, 200);
    place.write("haul-keys.json", &valid);
    fs::set_permissions(place.path("haul-keys.json"), fs::Permissions::from_mode(0o600)).unwrap();
    eventually("the file is valid again", || !degraded(&serving));

    keys(&place, &["forbid", "anonymous", "read", "b-1"]).code(0);
    eventually("the right is removed", || serving.request("GET", "/b-1/public/key", b"").0 == 403);
    serving.signal(Signal::HUP);
    serving.signal(Signal::TERM);
    assert_eq!(serving.wait().0, Some(0));
}

#[test]
fn server_does_not_start_with_an_unusable_key_file() {
    let place = place();
    let start = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let serve = |more: &[&str]| place.run(&[&start[..], more].concat());
    serve(&["--keys", "haul-keys.json"]).code(2).stderr_contains(&["--sealing-key"]);
    serve(&["--sealing-key", "haul-sealing-key"]).code(2).stderr_contains(&["--keys"]);
    let none = ["--keys", "none", "--sealing-key", "haul-sealing-key"];
    serve(&none).code(3).stderr_contains(&["none"]);
    place.write("haul-keys.json", "{");
    serve(&FILES).code(3).stderr_contains(&[
        "cannot use the keys",
        "damaged",
        "restore an earlier version of the file",
    ]);
    assert!(!place.path("haul-data").exists());
    let public = ["serve", "--listen", "0.0.0.0:0", "--admin", "127.0.0.1:0"];
    place.run(&public).code(3).stderr_contains(&["without credentials"]);
    keys(&place, &["init", "--keys", "new"]).code(0);
    let keyed = ["--keys", "new", "--sealing-key", "haul-sealing-key"];
    let refused = place.run(&[&public[..], &keyed].concat()).code(3);
    refused.stderr_contains(&["without TLS"]);
}

/// The page names the test of each of its lines.
#[test]
fn each_test_that_the_page_names_exists() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = fs::read_to_string(format!("{root}/docs/access.md")).unwrap();
    let files = [
        "crates/cli/tests/all/keys.rs",
        "crates/s3-server/tests/all/admin.rs",
        "crates/s3-server/tests/all/bucket_logs/configuration.rs",
        "crates/s3-server/tests/all/bucket_logs/requesters.rs",
        "crates/s3-server/tests/all/forms.rs",
        "crates/s3-server/tests/all/hosts.rs",
        "crates/s3-server/tests/all/auth.rs",
        "crates/s3-server/src/config.rs",
        "crates/s3-server/src/access/action.rs",
        "crates/s3-server/src/access/keys/key_ring.rs",
        "crates/s3-server/src/front/origin.rs",
        "crates/acceptance/tests/all/users.rs",
    ];
    let files = files.map(|path| PathBuf::from(format!("{root}/{path}")));
    let access_files = fs::read_dir(format!("{root}/crates/s3-server/tests/all/access")).unwrap();
    let files = files.into_iter().chain(access_files.map(|entry| entry.unwrap().path()));
    let sources: Vec<_> = files.map(|path| fs::read_to_string(path).unwrap()).collect();
    let (_, section) = page.split_once("## Who can do what").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let mut count = 0;
    for row in section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("|---")) {
        let test = row.trim_end_matches(" |").rsplit("| ").next().unwrap().trim_matches('`');
        if test != "test" {
            count += 1;
            let is_test = |source: &String| source.contains(&format!("fn {test}()"));
            assert!(sources.iter().any(is_test), "{test} is no test: {row}");
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn key_of_an_application_has_a_file_and_a_bucket() {
    let place = place();
    let created = keys(&place, &["create", "mail", "--bucket", "mail", "--output", "mail.keys"]);
    let created = created.code(0);
    assert!(created.text().starts_with("wrote the access key "), "{}", created.text());
    let mode = fs::metadata(place.path("mail.keys")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let written = fs::read_to_string(place.path("mail.keys")).unwrap();
    let lines: Vec<_> = written.lines().collect();
    assert_eq!((lines[0], lines.len()), ("# mail: admin mail", 3));
    assert!(!created.text().contains(lines[2].strip_prefix("secret_key = ").unwrap()));
    // A file is never overwritten, and no key is created then.
    let refused = keys(&place, &["create", "mail", "--output", "mail.keys"]).code(2);
    refused.stderr_contains(&["mail.keys exists"]);
    assert_eq!(printed(&place, &["list"]).lines().count(), 1);
    assert_eq!(fs::read_to_string(place.path("mail.keys")).unwrap(), written);
}

#[test]
fn missing_key_file_is_explained() {
    let place = TestDir::new();
    let refused = keys(&place, &["create", "alice"]).code(3);
    refused.stderr_contains(&["haul-sealing-key", "haul keys init"]);
}
