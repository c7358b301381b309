//! Sessions of the console: login, logout and their cookie.

use base64_simd::STANDARD as BASE64;
use haul_s3_server::Key;
use serde_json::{Value, json};

use super::{Keyed, administrator};
use crate::client::{Header, Reply, Running};

const CONSOLE: Header<'static> = ("x-haul-console", "1");

/// What a browser sends when it opens a page.
const NAVIGATION: [Header<'static>; 2] =
    [("accept", "text/html,*/*;q=0.8"), ("sec-fetch-mode", "navigate")];

fn log_in(keyed: &Keyed, access_key: &str, secret_key: &str) -> Reply {
    let body = json!({ "access_key": access_key, "secret_key": secret_key }).to_string();
    keyed.server.admin.send("POST", "/login", &[CONSOLE], body.as_bytes())
}

/// What a browser has after a login.
struct Session {
    cookie: String,
    page_token: String,
}

impl Session {
    fn begin(keyed: &Keyed, key: &Key) -> Self {
        let reply = log_in(keyed, &key.access_key, &key.secret_key);
        assert_eq!(reply.status, 200, "{}", reply.text());
        let cookie = reply.header("set-cookie").unwrap();
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let json: Value = serde_json::from_slice(&reply.body).unwrap();
        let page_token = json["page_token"].as_str().unwrap().to_owned();
        assert!(!cookie.contains(&page_token) && !reply.text().contains(&key.secret_key));
        Self { cookie, page_token }
    }

    fn send(&self, keyed: &Keyed, method: &str, path: &str) -> Reply {
        let headers = [("x-haul-console", &*self.page_token), ("cookie", &*self.cookie)];
        keyed.server.admin.send(method, path, &headers, b"x")
    }

    fn statuses(&self, keyed: &Keyed) -> [u16; 6] {
        [
            ("GET", "/s3/bucket/key"),
            ("PUT", "/s3/bucket/new"),
            ("GET", "/presign?bucket=bucket&key=key&seconds=60"),
            ("GET", "/keys.json"),
            ("GET", "/stats.json"),
            ("GET", "/console.js"),
        ]
        .map(|(method, path)| self.send(keyed, method, path).status)
    }
}

#[test]
fn session_has_the_rights_of_its_key_until_the_logout() {
    let mut keyed = Keyed::new();
    let reader = keyed.key("alice", &[("read,list", "bucket")]);
    let session = Session::begin(&keyed, &reader);
    assert_eq!(session.statuses(&keyed), [200, 403, 200, 403, 403, 200]);
    let shown = session.send(&keyed, "GET", "/session.json");
    let shown: Value = serde_json::from_slice(&shown.body).unwrap();
    let expected = json!({ "has_keys": true, "name": &*reader.access_key, "has_session": true });
    assert_eq!(shown, expected);
    let cookie = session.cookie.replace('=', "=x");
    let wrong = Session { cookie, page_token: session.page_token.clone() };
    assert_eq!(wrong.statuses(&keyed), [401; 6]);

    // A login in the request has precedence, and a wrong one is not overlooked.
    for (secret, status) in [(&*administrator().secret_key, 200), ("wrong", 401)] {
        let basic = format!("Basic {}", BASE64.encode_to_string(format!("root:{secret}")));
        let headers = [("cookie", &*session.cookie), ("authorization", &*basic)];
        let reply = keyed.server.admin.send("GET", "/stats.json", &headers, b"");
        assert_eq!(reply.status, status, "{secret}");
    }

    let without_header = [("cookie", &*session.cookie)];
    assert_eq!(keyed.server.admin.send("POST", "/logout", &without_header, b"").status, 403);
    assert_eq!(session.statuses(&keyed)[0], 200);
    let reply = session.send(&keyed, "POST", "/logout");
    assert_eq!(reply.status, 200);
    assert!(reply.header("set-cookie").unwrap().ends_with("; Max-Age=0"));
    assert_eq!(session.statuses(&keyed), [401; 6]);
}

#[test]
fn session_ends_when_its_key_is_disabled_or_revoked() {
    let mut keyed = Keyed::new();
    let key = keyed.key("alice", &[("read", "bucket")]);
    for is_removed in [false, true] {
        let session = Session::begin(&keyed, &key);
        let status = |keyed: &Keyed| session.send(keyed, "GET", "/s3/bucket/key").status;
        assert_eq!(status(&keyed), 200);
        keyed.change(|list| match is_removed {
            true => assert!(list.remove(&key.access_key)),
            false => list.key_mut(&key.access_key).unwrap().is_disabled = true,
        });
        assert_eq!(status(&keyed), 401);
        assert_eq!(log_in(&keyed, &key.access_key, &key.secret_key).status, 401);
        if !is_removed {
            keyed.change(|list| list.key_mut(&key.access_key).unwrap().is_disabled = false);
            assert_eq!(status(&keyed), 401);
        }
    }
}

#[test]
fn session_is_not_used_by_other_web_pages() {
    let mut keyed = Keyed::new();
    let key = keyed.key("alice", &[("read,write,list", "bucket")]);
    let session = Session::begin(&keyed, &key);
    let status = |method: &str, path: &str, more: &[Header<'_>]| {
        let headers = [&[("cookie", &*session.cookie)], more].concat();
        keyed.server.admin.send(method, path, &headers, b"x").status
    };
    let page = ("x-haul-console", &*session.page_token);
    assert_eq!(status("PUT", "/s3/bucket/key", &[page]), 200);
    assert_eq!(status("PUT", "/s3/bucket/key", &[]), 403);
    assert_eq!(status("PUT", "/s3/bucket/key", &[page, ("origin", "http://evil.example")]), 403);
    assert_eq!(status("GET", "/s3/bucket/key", &[("sec-fetch-site", "same-site")]), 403);
    // A server at another port of the host gets the cookie, and not the token of the page.
    for (method, path) in [
        ("PUT", "/s3/bucket/key"),
        ("GET", "/s3/bucket?list-type=2"),
        ("GET", "/s3/"),
        ("GET", "/keys.json"),
        ("POST", "/keys"),
        ("GET", "/requests.json"),
        ("GET", "/presign?bucket=bucket&key=key&seconds=60"),
    ] {
        assert_eq!(status(method, path, &[CONSOLE]), 401, "{method} {path}");
    }
    assert_eq!(status("GET", "/s3/bucket/key", &[]), 200, "as a link of the console");
    // A page of another origin cannot log the user in to a key of its own.
    let pair = json!({ "access_key": &*key.access_key, "secret_key": &*key.secret_key });
    for headers in [&[][..], &[CONSOLE, ("sec-fetch-site", "cross-site")]] {
        let admin = keyed.server.admin;
        let reply = admin.send("POST", "/login", headers, pair.to_string().as_bytes());
        assert_eq!((reply.status, reply.header("set-cookie")), (403, None));
    }
}

#[test]
fn wrong_logins_are_refused_and_limited() {
    let keyed = Keyed::new();
    let root = administrator();
    for body in ["", "{", "[]", "{}", "{\"access_key\":\"root\"}"] {
        let reply = keyed.server.admin.send("POST", "/login", &[CONSOLE], body.as_bytes());
        assert!(matches!(reply.status, 400 | 401), "{body}: {}", reply.status);
        assert_eq!(reply.header("www-authenticate"), None);
    }
    let mut statuses = Vec::new();
    for _ in 0..12 {
        statuses.push(log_in(&keyed, &root.access_key, "guess").status);
    }
    assert_eq!(statuses[0], 401);
    assert!(statuses.contains(&429), "{statuses:?}");
    let reply = log_in(&keyed, &root.access_key, &root.secret_key);
    if reply.status == 429 {
        assert!(reply.header("retry-after").is_some());
        assert_eq!(reply.header("set-cookie"), None, "the right one is limited, too");
    }
}

#[test]
fn browsers_get_the_login_page_and_programs_the_challenge() {
    let keyed = Keyed::new();
    let admin = keyed.server.admin;
    for path in ["/", "/metrics", "/stats.json"] {
        let page = admin.send("GET", path, &NAVIGATION, b"");
        assert_eq!((page.status, page.header("www-authenticate")), (200, None), "{path}");
        assert!(page.text().contains("id=\"secret-key\""), "{path}");
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        let program = admin.get(path);
        assert_eq!(program.status, 401, "{path}");
        assert!(program.header("www-authenticate").unwrap().starts_with("Basic "), "{path}");
        let script = admin.send("GET", path, &[("sec-fetch-mode", "cors")], b"");
        assert_eq!((script.status, script.header("www-authenticate")), (401, None), "{path}");
    }
    // A download of an object is not the login page.
    let object = admin.send("GET", "/s3/bucket/key", &NAVIGATION, b"");
    assert_eq!((object.status, object.header("www-authenticate")), (401, None));
    for path in ["/login", "/login.js", "/console.css", "/health"] {
        assert_eq!(admin.get(path).status, 200, "{path}");
    }
    assert_eq!(admin.get("/console.js").status, 401);
    // Without keys there is nothing to log in to.
    let open = Running::new();
    assert_eq!(open.admin.get("/login").status, 404);
    assert_eq!(open.admin.send("POST", "/login", &[CONSOLE], b"{}").status, 404);
    let session: Value = serde_json::from_slice(&open.admin.get("/session.json").body).unwrap();
    let expected = json!({ "has_keys": false, "name": null, "has_session": false });
    assert_eq!(session, expected);
}
