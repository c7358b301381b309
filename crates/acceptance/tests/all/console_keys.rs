//! Creates, changes and revokes keys in the console of `haul serve`, with Chromium.

use haul_testing::skip;
use tempfile::TempDir;

use crate::browser::Browser;
use crate::files::is_installed;
use crate::program;
use crate::server::{KEYS, Server};

const ROWS: &str = "[...document.querySelectorAll('#view-keys tbody tr')]";

fn row(text: &str) -> String {
    format!("{ROWS}.find((row) => row.innerText.includes('{text}'))")
}

/// Creates a directory with a key file, and returns the options that name it.
fn key_file() -> (TempDir, Vec<String>) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let options = vec!["--keys".into(), path("keys"), "--sealing-key".into(), path("sealing-key")];
    let output = program::command().args(["keys", "init"]).args(&options).output().unwrap();
    program::assert_success(&output);
    (dir, options)
}

/// Runs `haul keys` with these arguments and returns its output.
fn keys(arguments: &[&str], options: &[String]) -> String {
    let output = program::command().arg("keys").args(arguments).args(options).output().unwrap();
    program::assert_success(&output);
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the key pair in the output of `haul keys create`.
fn pair(created: &str) -> (String, String) {
    let value = |name: &str| {
        let line = created.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches([' ', '=']).to_owned()
    };
    (value("access_key"), value("secret_key"))
}

fn open(server: &Server, (access_key, secret_key): (&str, &str)) -> Browser {
    let mut browser = Browser::open(&format!("http://{}/health", server.admin), 1200, 900);
    browser.wait_for("location.pathname === '/health'");
    browser.log_in(access_key, secret_key);
    browser.navigate(&format!("http://{}/#keys", server.admin));
    browser
}

/// Creates a key of the user alice in the form, and returns the pair that the page shows.
fn create_alice(browser: &mut Browser) -> (String, String) {
    // The form is used with the keyboard only.
    browser.evaluate("document.querySelector('#view-keys button.main').focus()");
    browser.press("Enter");
    browser.wait_for("document.activeElement.tagName === 'INPUT'");
    browser.type_text("alice");
    let scope = "document.querySelector('#view-keys .grant input:not([type])')";
    browser.evaluate(&format!("{scope}.focus()"));
    browser.type_text("photos/2026/");
    for right in ["read", "write"] {
        browser.evaluate(&format!(
            "document.querySelector('#view-keys .grant input[value={right}]').click()"
        ));
    }
    browser.picture("keys-new.png");
    browser.press("Enter");
    let secret = "document.querySelectorAll('#view-keys .secret input')";
    let access_key = browser.wait_for(&format!("{secret}[0]?.value")).as_str().unwrap().to_owned();
    let secret_key = browser.evaluate(&format!("{secret}[1].value")).as_str().unwrap().to_owned();
    assert_eq!((access_key.len(), secret_key.len()), (20, 40));
    browser.wait_for(&row("alice"));
    (access_key, secret_key)
}

#[test]
fn console_creates_changes_and_revokes_keys() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let (dir, options) = key_file();
    let borrowed: Vec<&str> = options.iter().map(String::as_str).collect();
    let hostile = "*/<img src=x onerror=document.title=1>\"'&";
    keys(&["create", "other", "--allow", &format!("read={hostile}")], &options);
    let server = Server::start_with_keys(&dir.path().join("data"), &borrowed);
    let mut browser = open(&server, KEYS);
    browser.wait_for(&format!("{}?.innerText.includes('onerror')", row("other")));
    assert!(browser.evaluate(&row(KEYS.0)).is_object(), "the administrator is listed");

    let (access_key, secret_key) = create_alice(&mut browser);
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        browser.picture(&format!("keys-secret-{scheme}.png"));
    }
    let shown = keys(&["show", &access_key], &options);
    assert!(shown.contains("read,write photos/2026/"), "{shown}");

    // The secret key disappears with the view, and is nowhere else.
    browser.evaluate("location.hash = 'overview'");
    browser.wait_for("document.querySelector('#view-overview .plot')");
    browser.evaluate("location.hash = 'keys'");
    browser.wait_for(&row("alice"));
    let page = browser.evaluate("document.documentElement.outerHTML + location.href");
    assert!(!page.as_str().unwrap().contains(&secret_key));

    let button = |text: &str| {
        format!(
            "[...{}.querySelectorAll('button')].find((b) => b.textContent === '{text}')",
            row("alice")
        )
    };
    browser.evaluate(&format!("{}.click()", button("Rights…")));
    browser.wait_for("document.querySelector('#view-keys form')");
    browser.evaluate("document.querySelector('#view-keys .grant input[value=write]').click()");
    browser.evaluate("document.querySelector('#view-keys .grant input[value=list]').click()");
    browser.resize(360, 740);
    let overflow = "((page) => page.scrollWidth - page.clientWidth)(document.documentElement)";
    assert_eq!(browser.evaluate(overflow), 0, "the form is as wide as the screen");
    browser.picture("keys-rights-phone.png");
    browser.resize(1200, 900);
    browser.evaluate("document.querySelector('#view-keys form button.main').click()");
    browser.wait_for(&format!("{}?.innerText.includes('read,list = photos/2026/')", row("alice")));
    let shown = keys(&["show", &access_key], &options);
    assert!(shown.contains("read,list photos/2026/"), "{shown}");

    // The first press only asks.
    browser.evaluate(&format!("{}.click()", button("Disable")));
    browser.evaluate(&format!("{}.click()", button("Really?")));
    browser.wait_for(&format!("{}?.innerText.includes('disabled')", row("alice")));
    browser.picture("keys-disabled.png");
    browser.evaluate(&format!("{}.click()", button("Revoke")));
    browser.evaluate(&format!("{}.click()", button("Really?")));
    browser.wait_for(&format!("!{}", row("alice")));
    assert!(!keys(&["list"], &options).contains("alice"));
    let title = browser.evaluate("document.title");
    assert!(title.as_str().unwrap().ends_with(" – haul serve"), "names are text: {title}");
    let errors = browser.take_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}

#[test]
fn console_changes_policies_and_groups() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let (dir, options) = key_file();
    keys(&["create", "alice"], &options);
    for group in ["staff", "other"] {
        keys(&["group", "add", group, "alice"], &options);
    }
    let borrowed: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Server::start_with_keys(&dir.path().join("data"), &borrowed);
    let mut browser = open(&server, KEYS);
    let card = "document.querySelector('#view-keys .policies')";
    let button = |name: &str| {
        format!("[...{card}.querySelectorAll('button')].find((b) => b.textContent === '{name}')")
    };
    let message = "document.querySelector('#view-keys .policies .message')?.innerText";
    browser.wait_for(&button("Create a policy…"));
    // The form is used with the keyboard only.
    browser.evaluate(&format!("{}.focus()", button("Create a policy…")));
    browser.press("Enter");
    browser.wait_for("document.activeElement.tagName === 'INPUT'");
    browser.type_text("read-photos");
    browser.press("Tab");
    browser.type_text("bob");
    browser.press("Tab");
    browser.type_text("staff, other");
    browser.picture("policy-new.png");
    // A policy that the server would not enforce stays in the form.
    let area = format!("{card}.querySelector('textarea')");
    let text = browser.evaluate(&format!("{area}.value")).as_str().unwrap().to_owned();
    browser.fill(&area, &text.replace("GetObject", "GotObject"));
    browser.click(&button("Save"));
    browser.wait_for(&format!("{message}?.includes('GotObject')"));
    browser.fill(&area, &text.replace("BUCKET", "photos"));
    browser.click(&button("Save"));
    browser.wait_for(&format!("{message} === 'The policy read-photos is in force.'"));
    assert_eq!(
        keys(&["policy", "list"], &options),
        "read-photos: users bob; groups other, staff\n"
    );
    browser.resize(360, 740);
    let overflow = "((page) => page.scrollWidth - page.clientWidth)(document.documentElement)";
    assert_eq!(browser.evaluate(overflow), 0, "the card is as wide as the screen");
    browser.picture("policies-phone.png");
    browser.resize(1200, 900);

    let edit = |name: &str| format!("{card}.querySelector('button[aria-label=\"Edit… {name}\"]')");
    browser.click(&edit("staff"));
    browser.fill(&format!("{card}.querySelector('input:enabled')"), "alice bob");
    browser.click(&button("Save"));
    browser.wait_for(&format!("{message} === 'Changed the group staff.'"));
    browser.click(&edit("read-photos"));
    browser.wait_for(&format!("{area}?.value.includes('arn:aws:s3:::photos/*')"));
    browser.fill(&format!("{card}.querySelectorAll('input:enabled')[1]"), "staff");
    browser.picture("policies.png");
    browser.click(&button("Save"));
    browser.wait_for(&format!("{message} === 'The policy read-photos is in force.'"));
    let listed = keys(&["group", "list"], &options);
    let expected = "other: users alice; policies none\nstaff: users alice, bob; policies \
                    read-photos\n";
    assert_eq!(listed, expected);

    browser.click(&button("Remove"));
    browser.click(&button("Really?"));
    browser.wait_for(&format!("{message}?.includes('is attached to')"));
    let mut errors = browser.take_errors();
    errors.retain(|error| !error.contains("400 (Bad Request)"));
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}

#[test]
fn console_creates_a_key_for_a_bucket_in_one_step() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let (dir, options) = key_file();
    let borrowed: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Server::start_with_keys(&dir.path().join("data"), &borrowed);
    let mut browser = open(&server, KEYS);
    browser.wait_for(&row(KEYS.0));
    let put = "fetch('/s3/photos', { method: 'PUT', headers: { 'X-Haul-Console': '1' } })
        .then((response) => response.status)";
    assert_eq!(browser.evaluate(put), 200);
    browser.evaluate("location.hash = 'objects/photos?settings'");
    let card = "document.querySelector('#view-objects section[aria-label^=\"A key\"]')";
    browser.click(&format!("{card}.querySelector('input[value=delete]')"));
    browser.evaluate(&format!("{card}.querySelector('form button').focus()"));
    browser.press("Enter");
    let secret = format!("{card}.querySelectorAll('.secret input')");
    let access_key = browser.wait_for(&format!("{secret}[0]?.value")).as_str().unwrap().to_owned();
    let secret_key = browser.evaluate(&format!("{secret}[1].value")).as_str().unwrap().to_owned();
    browser.picture("settings-key.png");
    let shown = keys(&["show", &access_key], &options);
    assert!(shown.contains("read,write,list photos"), "{shown}");

    // The secret key disappears with the view.
    browser.evaluate("location.hash = 'keys'");
    browser.wait_for(&row(&access_key));
    let page = browser.evaluate("document.documentElement.outerHTML");
    assert!(!page.as_str().unwrap().contains(&secret_key));

    // The key works in the console, in its bucket only.
    browser.log_in(&access_key, &secret_key);
    let status = |path: &str| {
        format!(
            "fetch('/s3{path}', {{ method: 'PUT', body: '1', headers: {{ 'X-Haul-Console': '1' }} }})
             .then((response) => response.status)"
        )
    };
    assert_eq!(browser.evaluate(&status("/photos/key")), 200);
    assert_eq!(browser.evaluate(&status("/other/key")), 404);
    assert_eq!(browser.evaluate(&status("/other")), 403);
    server.stop();
}

#[test]
fn console_sets_the_quota_of_a_user() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let (dir, options) = key_file();
    keys(&["create", "alice"], &options);
    let borrowed: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Server::start_with_keys(&dir.path().join("data"), &borrowed);
    let mut browser = open(&server, KEYS);
    let card = "document.querySelector('#view-keys .quota')";
    browser.wait_for(&format!("{card}?.innerText.includes('No user has a quota')"));
    browser.fill(&format!("{card}.querySelector('input[name=bytes]')"), "much");
    browser.click(&format!("{card}.querySelector('button')"));
    let message = "document.querySelector('#view-keys .message').innerText";
    browser.wait_for(&format!("{message}.includes('is no size')"));
    browser.fill(&format!("{card}.querySelector('input[name=bytes]')"), "10 GiB");
    browser.click(&format!("{card}.querySelector('button')"));
    browser.wait_for(&format!("{message} === 'Set the quota of alice.'"));
    assert!(browser.evaluate(&format!("{card}.innerText.includes('10.0 GiB')")) == true);
    let shown = keys(&["list"], &options);
    assert!(shown.contains("10GiB") || shown.contains("10 GiB"), "{shown}");
    browser.picture("quotas-of-users.png");
    server.stop();
}

#[test]
fn console_says_why_keys_cannot_be_changed() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = Server::start_with_keys(&dir.path().join("data"), &[]);
    let mut browser = open(&server, KEYS);
    let text = "document.querySelector('#view-keys .card:not([hidden]) p')?.innerText";
    let reason = browser.wait_for(text);
    assert!(reason.as_str().unwrap().contains("The server has no key file"), "{reason}");
    assert_eq!(browser.evaluate("document.querySelectorAll('#view-keys button').length"), 0);
    server.stop();

    // The key that logged in is the last one with admin rights.
    let (dir, options) = key_file();
    let created = keys(&["create", "alice", "--allow", "admin=*"], &options);
    let (access_key, secret_key) = pair(&created);
    let borrowed: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Server::start_with(&dir.path().join("data"), &borrowed);
    let mut browser = open(&server, (&access_key, &secret_key));
    browser.wait_for(&row("(you)"));
    let revoke = format!("[...{}.querySelectorAll('button')].pop()", row("(you)"));
    browser.evaluate(&format!("{revoke}.click()"));
    browser.evaluate(&format!("{revoke}.click()"));
    let message = browser.wait_for("document.querySelector('#view-keys .message.bad')?.innerText");
    assert!(message.as_str().unwrap().contains("the last key with the right admin"), "{message}");
    assert!(keys(&["list"], &options).contains(&access_key));
    server.stop();
}

#[test]
fn console_shows_recent_requests_after_a_login() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let (dir, options) = key_file();
    let created = keys(&["create", "alice"], &options);
    let borrowed: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Server::start_with_keys(&dir.path().join("data"), &borrowed);
    assert_eq!(server.client().request("GET", "/private/object", b"").unwrap().status, 404);
    let (access_key, secret_key) = pair(&created);
    let mut browser = open(&server, (&access_key, &secret_key));
    browser.evaluate("location.hash = 'requests'");
    let login = "document.querySelector('#view-requests a[href=\"/login#requests\"]')";
    browser.wait_for(&format!("{login}?.textContent === 'Log in with another key'"));
    let text = "document.querySelector('#view-requests').innerText";
    browser.wait_for(&format!("{text}.includes('Requests by kind')"));
    browser.picture("requests-login.png");
    let before = browser.evaluate(text);
    assert!(!before.as_str().unwrap().contains("/private/object"), "{before}");
    browser.log_in(KEYS.0, KEYS.1);
    browser.evaluate("location.reload()");
    browser.wait_for(&format!("{text}.includes('get /private/object')"));
    server.stop();
}
