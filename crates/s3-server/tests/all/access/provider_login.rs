//! Logins to the console with an OpenID Connect provider.

use haul_testing::http::{Message, Peer};
use haul_testing::oidc::TokenKey;
use serde_json::{Value, json};

use super::administrator;
use super::providers::Setup;
use crate::client::{Header, Reply};

const CONSOLE: Header<'static> = ("x-haul-console", "1");

/// A server with a provider for logins, whose key is known.
fn setup(claims: &Value) -> Setup {
    let setup = Setup::new(&json!({ "console_url": "http://127.0.0.1:9001/" }));
    let (key, claims) = (TokenKey::es256("a"), setup.provider.claims(claims));
    setup.provider.publish(&[&key]);
    setup.provider.log_in_as(key, claims);
    setup
}

fn post(setup: &Setup, path: &str, more: &[Header<'_>], body: &Value) -> Reply {
    let headers = [&[CONSOLE], more].concat();
    setup.server.admin.send("POST", path, &headers, body.to_string().as_bytes())
}

/// Returns the first pair of the cookie that a response sets.
fn cookie(reply: &Reply) -> String {
    reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// A login that a browser has started, and what the provider has sent back.
struct Started {
    cookie: String,
    code: String,
    state: String,
}

impl Started {
    fn new(setup: &Setup) -> Self {
        let reply = post(setup, "/login/start", &[], &json!({ "provider": "id" }));
        assert_eq!(reply.status, 200, "{}", reply.text());
        let json: Value = serde_json::from_slice(&reply.body).unwrap();
        let url = json["url"].as_str().unwrap();
        let rest = url.strip_prefix("http://").unwrap();
        let (address, path) = rest.split_once('/').unwrap();
        let request = format!("GET /{path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let Message { fields, status, .. } = Peer::connect(address).unwrap().exchange(request);
        assert_eq!(status, 302);
        let location = fields.iter().find(|(name, _)| name == "location").unwrap().1.clone();
        let query = location.strip_prefix("http://127.0.0.1:9001/login/callback/id?").unwrap();
        let value = |wanted: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(name, _)| name == wanted).unwrap().1.into_owned()
        };
        Self { cookie: cookie(&reply), code: value("code"), state: value("state") }
    }

    fn finish(&self, setup: &Setup) -> Reply {
        let body = json!({ "provider": "id", "code": self.code, "state": self.state });
        post(setup, "/login/finish", &[("cookie", &self.cookie)], &body)
    }
}

/// Logs in, and returns the cookie and the token of the page.
fn log_in(setup: &Setup) -> (String, String) {
    let reply = Started::new(setup).finish(setup);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let json: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(json["name"], "id:ann");
    (cookie(&reply), json["page_token"].as_str().unwrap().to_owned())
}

#[test]
fn user_of_a_provider_logs_in_and_has_its_policies_of_the_moment() {
    let mut setup = setup(&json!({ "preferred_username": "ann" }));
    let listed = setup.server.admin.get("/login/providers.json");
    assert_eq!(listed.text(), r#"{"providers":["id"]}"#);
    assert!(setup.server.admin.get("/login/callback/id").text().contains("id=\"login\""));
    let (cookie, page_token) = log_in(&setup);
    let send = |setup: &Setup, method: &str, path: &str| {
        let headers = [("x-haul-console", &*page_token), ("cookie", &*cookie)];
        setup.server.admin.send(method, path, &headers, b"")
    };
    let expected = json!({ "has_keys": true, "name": "id:ann", "has_session": true });
    let shown = send(&setup, "GET", "/session.json");
    assert_eq!(serde_json::from_slice::<Value>(&shown.body).unwrap(), expected);
    assert_eq!(send(&setup, "GET", "/s3/bucket/key").body, b"hello");
    assert_eq!(send(&setup, "PUT", "/s3/bucket/key").status, 403);
    assert_eq!(send(&setup, "GET", "/keys.json").status, 403);
    assert_eq!(send(&setup, "GET", "/requests.json").status, 403);
    let link = send(&setup, "GET", "/presign?bucket=bucket&key=key&seconds=60").text();
    let target = &link[link.find("/bucket/").unwrap()..];
    assert_eq!(setup.server.s3.get(target).body, b"hello", "{link}");
    // It is valid no longer than the session.
    let link = send(&setup, "GET", "/presign?bucket=bucket&key=key&seconds=604800").text();
    let seconds = link.split("X-Amz-Expires=").nth(1).and_then(|rest| rest.split('&').next());
    let seconds: u32 = seconds.unwrap().parse().unwrap();
    assert!((43_000..=43_200).contains(&seconds), "{link}");
    setup.list.policies_mut().put("read", &super::providers::deny_all()).unwrap();
    setup.ring.replace(setup.list.clone());
    assert_eq!(send(&setup, "GET", "/s3/bucket/key").status, 403);
    assert_eq!(send(&setup, "POST", "/logout").status, 200);
    assert_eq!(send(&setup, "GET", "/s3/bucket/key").status, 401);
}

#[test]
fn login_is_for_the_browser_that_started_it_and_for_one_use() {
    let setup = setup(&json!({ "preferred_username": "ann" }));
    let status = |started: &Started| started.finish(&setup).status;
    let (first, second) = (Started::new(&setup), Started::new(&setup));
    let with_state = |started: &Started, state: &str| Started {
        cookie: started.cookie.clone(),
        code: started.code.clone(),
        state: state.to_owned(),
    };
    // A page that makes the browser finish another login would log it in to another account.
    assert_eq!(status(&with_state(&first, &second.state)), 403);
    assert_eq!(status(&first), 403, "a wrong state ends the login");
    assert_eq!(status(&with_state(&second, &second.state)), 200);
    assert_eq!(status(&second), 403, "each login is finished once");
    let other = Started::new(&setup);
    let body = json!({ "provider": "x", "code": other.code, "state": other.state });
    let cookie = [("cookie", &*other.cookie)];
    assert_eq!(post(&setup, "/login/finish", &cookie, &body).status, 403, "another provider");
    let third = Started::new(&setup);
    let body = json!({ "provider": "id", "code": third.code, "state": third.state });
    assert_eq!(post(&setup, "/login/finish", &[], &body).status, 403);
    let foreign = [("cookie", &*third.cookie), ("sec-fetch-site", "cross-site")];
    assert_eq!(post(&setup, "/login/finish", &foreign, &body).status, 403);
    assert_eq!(post(&setup, "/login/start", &foreign, &json!({ "provider": "id" })).status, 403);
    let wrong_code = Started { code: "other".to_owned(), ..Started::new(&setup) };
    assert_eq!(status(&wrong_code), 403);
    // Another login has another verifier.
    let (early, _late) = (Started::new(&setup), Started::new(&setup));
    assert_eq!(status(&early), 403);
}

#[test]
fn tokens_of_other_logins_audiences_times_and_keys_log_nobody_in() {
    for claims in [
        json!({ "nonce": "other" }),
        json!({ "nonce": null }),
        json!({ "aud": "other" }),
        json!({ "exp": 1 }),
        json!({ "iss": "http://127.0.0.1:1" }),
        json!({ "sub": "" }),
    ] {
        let setup = setup(&claims);
        let reply = Started::new(&setup).finish(&setup);
        assert_eq!((reply.status, reply.header("set-cookie").is_some()), (403, true), "{claims}");
        assert!(reply.header("set-cookie").unwrap().ends_with("; Max-Age=0"), "{claims}");
        assert!(reply.text().starts_with("The login is refused: "), "{}", reply.text());
    }
    let setup = setup(&json!({}));
    setup.provider.log_in_as(TokenKey::es256("a"), setup.provider.claims(&json!({})));
    assert_eq!(Started::new(&setup).finish(&setup).status, 403, "a key that is not published");
}

#[test]
fn providers_without_a_page_of_the_console_log_nobody_in() {
    let setup = Setup::new(&json!({}));
    assert_eq!(setup.server.admin.get("/login/providers.json").text(), r#"{"providers":[]}"#);
    for name in ["id", "other", ""] {
        let reply = post(&setup, "/login/start", &[], &json!({ "provider": name }));
        assert_eq!(reply.status, 403, "{name}");
    }
    // Requests that finish no login are limited as other attempts.
    let statuses: Vec<_> =
        (0..20).map(|_| post(&setup, "/login/finish", &[], &json!({})).status).collect();
    assert!(statuses.contains(&403) && statuses.contains(&429), "{statuses:?}");
    // A provider that cannot be reached.
    let down = Setup::new(&json!({
        "console_url": "http://127.0.0.1:9001", "issuer": "http://127.0.0.1:1/down",
    }));
    let reply = post(&down, "/login/start", &[], &json!({ "provider": "id" }));
    assert_eq!(reply.status, 502, "{}", reply.text());
    let pair = administrator();
    let pair = json!({ "access_key": &*pair.access_key, "secret_key": &*pair.secret_key });
    assert_eq!(post(&down, "/login", &[], &pair).status, 200, "keys log in all the same");
}
