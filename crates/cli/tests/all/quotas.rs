//! Quotas: those of users in the key file, those of buckets by the commands of the pages, and imports,
//! which ignore them.

use std::process::Command;

use haul_testing::eventually;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::helper::{Finished, Serving, TestDir};

/// The key pair of the administrator.
const PAIR: [(&str, &str); 2] =
    [("HAUL_ACCESS_KEY", "root"), ("HAUL_SECRET_KEY", "root-secret0123456789")];

/// Returns the first block of commands in a section of a page.
fn commands(page: &str, heading: &str) -> String {
    let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(path).unwrap();
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    let (_, block) = section.split_once("\n```sh\n").unwrap();
    block.split_once("\n```").unwrap().0.to_owned()
}

fn keys(place: &TestDir, arguments: &[&str]) -> Finished {
    place.run(&[&["keys"], arguments].concat())
}

/// Starts a server with the administrator and a key file.
fn serve(place: &TestDir) -> Serving {
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--keys",
        "haul-keys.json",
        "--sealing-key",
        "haul-sealing-key",
    ];
    TestDir::start(place.command(&arguments).envs(PAIR))
}

/// Runs shell commands that contain the address of the pages.
fn shell(place: &TestDir, server: &Serving, commands: &str) -> Finished {
    let commands = commands.replace("127.0.0.1:9000", server.address("S3"));
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &commands]).envs(PAIR).current_dir(place.path("."));
    Finished(shell.output().unwrap())
}

/// Sends a signed request; returns its status and the response.
fn curl(place: &TestDir, server: &Serving, arguments: &str) -> String {
    let curl = "curl --silent --aws-sigv4 aws:amz:us-east-1:s3 \
                --header 'x-amz-content-sha256: UNSIGNED-PAYLOAD' \
                --user \"$HAUL_ACCESS_KEY:$HAUL_SECRET_KEY\" --write-out ' %{http_code}'";
    shell(place, server, &format!("{curl} {arguments}")).code(0).text().to_owned()
}

#[test]
fn quota_of_a_user_is_set_shown_and_removed() {
    let place = TestDir::new();
    keys(&place, &["init"]).code(0);
    let created = keys(&place, &["create", "ben", "--quota", "1GiB", "--json"]).code(0);
    let access = serde_json::from_str::<Value>(created.text()).unwrap()["access_key"].clone();
    let access = access.as_str().unwrap();
    let listed = || keys(&place, &["list"]).code(0).text().to_owned();
    assert!(listed().ends_with("\nquota of ben: 1 GiB\n"), "{}", listed());
    let set = keys(&place, &["set", "ben", "--quota-objects", "1000"]).code(0);
    let set = set.stderr_contains(&["within a few seconds"]);
    assert_eq!(set.text(), "quota of ben: 1 GiB, 1,000 objects\n");
    let text = keys(&place, &["show", access]).code(0).text().to_owned();
    assert!(text.ends_with("\nquota       1 GiB, 1,000 objects\n"), "{text}");
    let object = |ended: Finished| serde_json::from_str::<Value>(ended.text()).unwrap();
    let shown = object(keys(&place, &["show", access, "--json"]).code(0));
    assert_eq!(shown["quota"], json!({ "bytes": 1 << 30, "objects": 1000 }));
    // The quota remains with the buckets of the user, and limits another key of it.
    keys(&place, &["remove", access]).code(0);
    assert_eq!(listed(), "quota of ben: 1 GiB, 1,000 objects\n");
    let set = object(keys(&place, &["set", "ben", "--quota", "none", "--json"]).code(0));
    assert_eq!(set, json!({ "user": "ben", "quota": { "bytes": null, "objects": 1000 } }));
    keys(&place, &["set", "ben", "--quota-objects", "none"]).code(0);
    assert_eq!(listed(), "");
    for (arguments, code, text) in [
        (&["set", "ben", "--quota", "1GiB"][..], 1, "there is no user ben"),
        (&["set", "ben"], 2, "nothing to set"),
        (&["set", "ben", "--quota", "much"], 2, "--quota"),
        (&["set", "ben", "--quota-objects", "1K"], 2, "must be a whole number, or none"),
        (&["create", "a b", "--quota", "1GiB"], 2, "cannot be a user"),
    ] {
        keys(&place, arguments).code(code).stderr_contains(&[text]);
    }
}

#[test]
fn commands_of_the_pages_limit_a_bucket_and_a_user() {
    if Command::new("curl").arg("--version").output().is_err() {
        return haul_testing::skip("curl is not installed");
    }
    let place = TestDir::new();
    keys(&place, &["init"]).code(0);
    let server = serve(&place);
    let curl = |arguments: &str| curl(&place, &server, arguments);
    assert_eq!(curl("--request PUT http://127.0.0.1:9000/photos"), " 200");
    let set = shell(&place, &server, &commands("docs/s3.md", "Quotas")).code(0);
    assert_eq!(set.text(), "");
    let quota = curl("'http://127.0.0.1:9000/photos?quota='");
    let limits = "<Bytes>10737418240</Bytes><Objects>1000000</Objects><UsedBytes>0</UsedBytes>";
    assert!(quota.contains(limits), "{quota}");
    let small = "--request PUT --data '<QuotaConfiguration><Bytes>4</Bytes></QuotaConfiguration>'";
    assert_eq!(curl(&format!("{small} 'http://127.0.0.1:9000/photos?quota='")), " 200");
    let refused = curl("--request PUT --data hello http://127.0.0.1:9000/photos/key");
    assert!(refused.contains("QuotaExceeded") && refused.ends_with(" 403"), "{refused}");
    let delete = curl("--request DELETE 'http://127.0.0.1:9000/photos?quota='");
    assert_eq!(delete, " 204");
    assert_eq!(curl("--request PUT --data hello http://127.0.0.1:9000/photos/key"), " 200");

    // The commands name the program as users do.
    let program = place.command(&["--version"]);
    let program = program.get_program().to_str().unwrap().to_owned();
    for line in commands("docs/access.md", "Quotas of users").lines() {
        let line = line.strip_prefix("haul ").unwrap();
        shell(&place, &server, &format!("{program} {line}")).code(0);
    }
    let listed = keys(&place, &["list"]).code(0).text().to_owned();
    assert!(listed.ends_with("\nquota of ben: 1,000,000 objects\n"), "{listed}");
    let written = std::fs::read_to_string(place.path("ben.credentials")).unwrap();
    let value = |name: &str| written.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let pair = format!("{}:{}", value("access_key = "), value("secret_key = "));
    let as_ben = |arguments: &str| {
        let sign = "curl --silent --aws-sigv4 aws:amz:us-east-1:s3 \
                    --header 'x-amz-content-sha256: UNSIGNED-PAYLOAD' --write-out ' %{http_code}'";
        let command = format!("{sign} --user '{pair}' {arguments}");
        shell(&place, &server, &command).code(0).text().to_owned()
    };
    eventually("the key is known", || {
        as_ben("--request PUT http://127.0.0.1:9000/bens").ends_with(" 200")
    });
    keys(&place, &["set", "ben", "--quota", "4B"]).code(0);
    let put = "--request PUT --data hello http://127.0.0.1:9000/bens/key";
    eventually("the quota applies", || as_ben(put).contains("QuotaExceeded"));
    assert_eq!(curl(&put.replace("bens", "photos")), " 200");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().0, Some(0));

    // A command on the store is not limited: an import takes what another server accepted.
    place.run_with(&["store", "put", "bens/key"], b"hello").code(0);
}
