//! Logs in to and out of the console of `haul serve` on its login page, with Chromium.

use haul_testing::oidc::{IdentityProvider, TokenKey};
use haul_testing::{ReservedAddress, skip};
use serde_json::json;

use crate::browser::Browser;
use crate::files::is_installed;
use crate::program;
use crate::running::Running;
use crate::server::{KEYS, Server};

/// Fills in the login page and sends it, with the keyboard only.
fn log_in(browser: &mut Browser, access_key: &str, secret_key: &str) {
    browser.wait_for(
        "document.activeElement.id === 'access-key' && document.querySelector('button:enabled')",
    );
    browser.type_text(access_key);
    browser.press("Tab");
    browser.type_text(secret_key);
    browser.press("Enter");
}

const MESSAGE: &str = "document.getElementById('message')?.textContent";

#[test]
fn users_log_in_and_out_on_a_loopback_address() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = Server::start_with_keys(&dir.path().join("data"), &[]);
    let mut browser = Browser::open(&format!("http://{}/", server.admin), 1200, 900);
    // Statistics need no login, objects do: the page says so, and no dialog of the browser opens.
    browser.wait_for("document.querySelector('#view-overview .plot')");
    browser.wait_for("document.querySelector('#account a')?.textContent === 'Log in'");
    browser.evaluate("location.hash = 'objects'");
    browser.wait_for(
        "document.querySelector('#view-objects .message.bad')?.innerText.includes('Log in')",
    );
    browser.picture("login-link.png");
    browser.click("document.querySelector('#account a')");
    browser.wait_for("location.pathname === '/login' && document.querySelector('#login')");
    for scheme in ["dark", "light"] {
        browser.prefer(scheme);
        browser.picture(&format!("login-{scheme}.png"));
    }
    browser.resize(360, 740);
    let overflow = "((page) => page.scrollWidth - page.clientWidth)(document.documentElement)";
    assert_eq!(browser.evaluate(overflow), 0, "the login page is as wide as the screen");
    browser.picture("login-phone.png");
    browser.resize(1200, 900);
    log_in(&mut browser, KEYS.0, "wrong");
    browser.wait_for(&format!("{MESSAGE}.includes('is wrong')"));
    assert_eq!(browser.evaluate("document.getElementById('secret-key').value"), "");
    browser.type_text(KEYS.1);
    browser.press("Enter");

    // The view that needed the login is shown.
    browser.wait_for("location.pathname === '/' && document.querySelector('#view-objects .empty')");
    let account = browser.wait_for(
        "document.querySelector('#account button') && document.querySelector('#account').innerText",
    );
    assert!(account.as_str().unwrap().contains(KEYS.0), "{account}");
    assert_eq!(browser.evaluate("document.cookie"), "", "scripts cannot read the cookie");
    browser.picture("logged-in.png");
    browser.take_errors();
    browser.evaluate("location.hash = 'keys'");
    browser.wait_for("document.querySelector('#view-keys tbody tr')");
    let errors = browser.take_errors();
    assert!(errors.is_empty(), "{errors:#?}");

    browser.click("document.querySelector('#account button')");
    browser.wait_for("location.pathname === '/login' && document.querySelector('#login')");
    let status = "fetch('/s3/', { headers: { 'X-Haul-Console': '1' } }).then((response) =>
        [response.status, response.headers.get('WWW-Authenticate')])";
    assert_eq!(browser.evaluate(status), serde_json::json!([401, null]));
    server.stop();
}

/// Creates a key file, and returns the options that name it and the pair of a key of alice.
fn key_of_alice(dir: &std::path::Path) -> (Vec<String>, String, String) {
    let path = |name: &str| dir.join(name).display().to_string();
    let options = vec!["--keys".into(), path("keys"), "--sealing-key".into(), path("sealing-key")];
    let run = |arguments: &[&str]| {
        let output =
            program::command().arg("keys").args(arguments).args(&options).output().unwrap();
        program::assert_success(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["init"]);
    let created = run(&["create", "alice", "--allow", "read,list=photos"]);
    let value = |name: &str| {
        let line = created.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches([' ', '=']).to_owned()
    };
    (options, value("access_key"), value("secret_key"))
}

#[test]
fn public_address_shows_the_login_page_in_place_of_all_pages() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (options, access_key, secret_key) = key_of_alice(dir.path());
    let mut command = program::command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0", "--plain-http"]);
    command.arg("--data").arg(dir.path().join("data")).args(&options);
    command.env("HAUL_ACCESS_KEY", KEYS.0).env("HAUL_SECRET_KEY", KEYS.1);
    let server = Running::start(&mut command);
    let port = server.line.trim_end().trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    let url = format!("http://127.0.0.1:{port}/");
    let mut browser = Browser::open(&format!("{url}#storage"), 1200, 900);
    log_in(&mut browser, KEYS.0, KEYS.1);
    browser.wait_for("document.querySelector('#view-storage .usage')");
    // A page that is opened without the console is protected by the same session.
    browser.navigate(&format!("{url}metrics"));
    browser.wait_for("document.body?.innerText.includes('haul_objects')");
    browser.navigate(&url);
    browser.wait_for("document.querySelector('#account button') !== null");
    browser.click("document.querySelector('#account button')");
    browser.wait_for("location.pathname === '/login'");

    // A key with few rights logs in, too, and sees the views that it may.
    log_in(&mut browser, &access_key, &secret_key);
    let account = "document.querySelector('#account')?.innerText";
    browser.wait_for(&format!("{account}.includes('{access_key}')"));
    let tabs = "[...document.querySelectorAll('#views a')].map((tab) => tab.textContent).join()";
    assert_eq!(browser.wait_for(tabs), "Buckets,Keys");

    // Its session ends when it is disabled.
    let mut disable = program::command();
    let output = disable.args(["keys", "disable", &access_key]).args(&options).output().unwrap();
    program::assert_success(&output);
    browser.wait_for(
        "(fetch('/s3/', { headers: { 'X-Haul-Console': localStorage.getItem('haul-page-token') } })
            .then((response) => { window.last = response.status; }), window.last === 401)",
    );
    browser.navigate(&format!("{url}stats.json"));
    browser.wait_for("document.querySelector('#login')");
    server.stop();
}

#[test]
fn user_of_a_provider_logs_in_on_its_page_and_comes_back() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (options, ..) = key_of_alice(dir.path());
    let admin = ReservedAddress::new();
    let port = admin.to_string().rsplit(':').next().unwrap().to_owned();
    // The provider is another site, so that a `SameSite=Strict` cookie is not sent on the way back.
    let url = format!("http://localhost:{port}/");
    let provider = IdentityProvider::start();
    let config = json!({ "providers": [{
        "name": "corp", "issuer": provider.issuer(), "audience": "haul", "console_url": url,
        "client_secret": "shared",
    }] });
    let providers = dir.path().join("providers.json");
    std::fs::write(&providers, config.to_string()).unwrap();
    let serve = || {
        let mut command = program::command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", &admin.to_string()]);
        command.arg("--data").arg(dir.path().join("data")).args(&options);
        command.arg("--oidc").arg(&providers);
        command
    };
    // The file has a secret.
    let refused = serve().output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("accessible to other users"), "{stderr}");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&providers, private).unwrap();
    let server = Running::start(&mut serve());

    let (key, other) = (TokenKey::es256("a"), TokenKey::es256("a"));
    provider.publish(&[&key]);
    let claims = provider.claims(&json!({ "preferred_username": "ann@example.com" }));
    provider.log_in_as(other, claims.clone());
    let mut browser = Browser::open(&format!("{url}login#objects"), 1200, 900);
    let choice = "document.querySelector('#providers button')";
    browser.wait_for(&format!("{choice}?.textContent === 'Log in with corp'"));
    browser.picture("login-with-a-provider.png");
    browser.click(choice);
    browser.wait_for(&format!("{MESSAGE}?.includes('no key of its issuer has signed')"));
    assert_eq!(browser.evaluate("location.pathname + location.search"), "/login/callback/corp");

    // A login that another tab or another server of the host has started is not finished here.
    browser.navigate(&format!("{url}login/callback/corp?code=code&state=foreign"));
    browser.wait_for(&format!("{MESSAGE}?.includes('This tab has not started this login')"));

    provider.log_in_as(key, claims);
    browser.click(choice);
    browser.wait_for("location.hash === '#objects' && location.pathname === '/'");
    let account = browser.wait_for(
        "document.querySelector('#account button') && document.querySelector('#account').innerText",
    );
    assert!(account.as_str().unwrap().contains("corp:ann@example.com"), "{account}");
    assert_eq!(browser.evaluate("document.cookie"), "", "scripts cannot read the cookie");
    // No policy has the name in the token: the user has logged in, and may do nothing.
    let status = "fetch('/s3/photos', { headers: { 'X-Haul-Console':
        localStorage.getItem('haul-page-token') } }).then((response) => response.status)";
    assert_eq!(browser.evaluate(status), 404);
    browser.click("document.querySelector('#account button')");
    browser.wait_for("location.pathname === '/login' && document.querySelector('#login')");
    server.stop();
}
