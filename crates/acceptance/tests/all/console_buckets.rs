//! Creates, configures and deletes buckets in the console of `haul serve`, with Chromium.

use std::os::unix::fs::PermissionsExt;

use haul_testing::{WebhookReceiver, eventually, skip};
use serde_json::Value;

use crate::browser::Browser;
use crate::files::is_installed;
use crate::server::Server;

/// The card of a setting.
fn card(title: &str) -> String {
    format!("document.querySelector('#view-objects section[aria-label^=\"{title}\"]')")
}

/// The button with this text in an element.
fn button(within: &str, text: &str) -> String {
    format!("[...{within}.querySelectorAll('button')].find((one) => one.textContent === '{text}')")
}

fn press_twice(browser: &mut Browser, within: &str, text: &str) {
    browser.click(&button(within, text));
    browser.click(&button(within, "Really?"));
}

fn wait_for_text(browser: &mut Browser, element: &str, text: &str) {
    browser.wait_for(&format!("{element}?.innerText.includes('{text}')"));
}

/// Returns the status and the body of an S3 request.
fn get(server: &Server, path: &str) -> (u16, String) {
    let response = server.client().request("GET", path, b"").unwrap();
    (response.status, String::from_utf8(response.body).unwrap())
}

const FORM: &str = "document.querySelector('#view-objects form')";

/// The reason why a bucket cannot have the name that is filled in.
const FAULT: &str = "document.getElementById('bucket-name-fault').textContent";

/// Fills in names that S3 does not permit.
fn wrong_names_have_their_reasons(browser: &mut Browser) {
    for (name, reason) in [
        ("Abc", "upper-case"),
        ("a_b", "not \"_\""),
        ("-abc", "begins and ends"),
        ("a..b", "A dot"),
        ("10.0.0.1", "IP address"),
        ("xn--abc", "xn--"),
    ] {
        browser.fill("document.getElementById('bucket-name')", name);
        let shown = browser.evaluate(FAULT);
        assert!(shown.as_str().unwrap().contains(reason), "{name}: {shown}");
    }
    browser.fill("document.getElementById('bucket-name')", "ab");
    browser.click(&button(FORM, "Create"));
    assert_eq!(browser.evaluate(FAULT), "A name has 3 to 63 characters.");
}

#[test]
fn console_creates_and_deletes_buckets_with_the_keyboard() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut browser = Browser::open(&format!("http://{}/#objects", server.admin), 1200, 900);
    wait_for_text(&mut browser, "document.querySelector('#view-objects .empty')", "No buckets yet");
    let steps = browser.evaluate("document.querySelector('#view-objects pre').innerText");
    let address = format!("--endpoint-url http://{} ", server.listen);
    assert!(steps.as_str().unwrap().contains(&address), "{steps}");
    browser.picture("buckets-empty.png");

    wrong_names_have_their_reasons(&mut browser);
    browser.fill("document.getElementById('bucket-name')", "");
    browser.evaluate("document.getElementById('bucket-name').focus()");
    browser.type_text("photos");
    browser.press("Tab");
    browser.press("Space");
    browser.press("Enter");
    browser.wait_for("location.hash === '#objects/photos'");
    wait_for_text(&mut browser, "document.querySelector('#view-objects tbody')", "No objects.");
    assert!(get(&server, "/photos?versioning").1.contains("<Status>Enabled</Status>"));

    // The form that was filled in before is not shown while the buckets are loaded.
    let name = "document.getElementById('bucket-name')?.value ?? ''";
    let shown = browser.evaluate(&format!(
        "new Promise((done) => {{
            addEventListener('hashchange', () => setTimeout(() => done({name})), {{ once: true }});
            location.hash = 'objects';
        }})"
    ));
    assert_eq!(shown, "");
    browser.click("document.querySelectorAll('#view-objects form input[type=checkbox]')[1]");
    browser.fill("document.getElementById('bucket-name')", "archive");
    browser.click(&button(FORM, "Create"));
    browser.wait_for("location.hash === '#objects/archive'");
    assert_eq!(get(&server, "/archive?object-lock").0, 200);

    // A bucket with objects is not deleted.
    server.client().request("PUT", "/photos/key", b"hello").unwrap();
    browser.evaluate("location.hash = 'objects'");
    let row = |name: &str| {
        format!(
            "[...document.querySelectorAll('#view-objects tbody tr')]
             .find((row) => row.innerText.includes('{name}'))"
        )
    };
    browser.wait_for(&row("archive"));
    browser.fill("document.getElementById('bucket-name')", "photos");
    assert_eq!(browser.evaluate(FAULT), "You have a bucket with this name.");
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        browser.picture(&format!("buckets-{scheme}.png"));
    }
    let message = "document.querySelector('#view-objects .message')";
    press_twice(&mut browser, &row("photos"), "Delete");
    wait_for_text(&mut browser, message, "photos is not empty");
    browser.take_errors();
    press_twice(&mut browser, &row("archive"), "Delete");
    wait_for_text(&mut browser, message, "Deleted the bucket archive.");
    assert!(browser.evaluate(&format!("{} === undefined", row("archive"))) == true);
    assert_eq!(get(&server, "/archive?location").0, 404);
    let errors = browser.take_unexpected_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}

/// Opens the settings of the bucket `photos`, which has nothing set.
fn open_settings(server: &Server) -> Browser {
    assert_eq!(server.client().request("PUT", "/photos", b"").unwrap().status, 200);
    let url = format!("http://{}/#objects/photos?settings", server.admin);
    let mut browser = Browser::open(&url, 1200, 900);
    for title in ["Object lock", "Lifecycle", "Default encryption", "CORS"] {
        wait_for_text(&mut browser, &card(title), "not set");
    }
    wait_for_text(&mut browser, &card("Versioning"), "not set");
    wait_for_text(&mut browser, &card("Access"), "private");
    browser
}

#[test]
fn console_sets_versioning_object_lock_and_lifecycle() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut browser = open_settings(&server);
    browser.picture("settings-empty.png");

    let versioning = card("Versioning");
    browser.click(&button(&versioning, "Enable"));
    wait_for_text(&mut browser, &versioning, "Versioning is enabled.");
    press_twice(&mut browser, &versioning, "Suspend");
    wait_for_text(&mut browser, &versioning, "Versioning is suspended.");
    assert!(get(&server, "/photos?versioning").1.contains("<Status>Suspended</Status>"));
    browser.click(&button(&versioning, "Enable"));
    wait_for_text(&mut browser, &versioning, "Versioning is enabled.");

    let lock = card("Object lock");
    press_twice(&mut browser, &lock, "Enable for ever");
    wait_for_text(&mut browser, &lock, "Default retention");
    browser.fill(&format!("{lock}.querySelectorAll('select')[0]"), "GOVERNANCE");
    browser.fill(&format!("{lock}.querySelector('input')"), "30");
    browser.click(&button(&lock, "Save"));
    wait_for_text(&mut browser, &lock, "Saved.");
    let (_, document) = get(&server, "/photos?object-lock");
    assert!(document.contains("<Days>30</Days><Mode>GOVERNANCE</Mode>"), "{document}");

    // A second rule leaves the first one as it is.
    let rules = r#"<LifecycleConfiguration><Rule><ID>a &amp; b</ID><Filter><And><Prefix>a/</Prefix>
        <ObjectSizeGreaterThan>7</ObjectSizeGreaterThan></And></Filter><Status>Disabled</Status>
        <Expiration><Days>9</Days></Expiration></Rule></LifecycleConfiguration>"#;
    let life = card("Lifecycle");
    browser.fill(&format!("{life}.querySelector('textarea')"), rules);
    browser.click(&button(&format!("{life}.querySelectorAll('details')[1]"), "Save"));
    wait_for_text(&mut browser, &life, "keys that begin with a/, with further conditions");
    browser.click(&format!("{life}.querySelector('summary')"));
    let add = format!("{life}.querySelector('details')");
    browser.click(&button(&add, "Add the rule"));
    wait_for_text(&mut browser, &life, "at least one number of days");
    let field = |at: u32| format!("{add}.querySelectorAll('input')[{at}]");
    for (at, value) in [(0, "logs/ "), (1, "30"), (2, "7"), (3, "1")] {
        browser.fill(&field(at), value);
    }
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        browser.picture(&format!("settings-{scheme}.png"));
    }
    browser.click(&button(&add, "Add the rule"));
    wait_for_text(&mut browser, &life, "incomplete uploads are aborted after 1 day");
    let (_, document) = get(&server, "/photos?lifecycle");
    for part in [
        "<ID>a &amp; b</ID>",
        "<ObjectSizeGreaterThan>7</ObjectSizeGreaterThan>",
        "<Prefix>logs/ </Prefix>",
        "<NoncurrentDays>7</NoncurrentDays>",
        "<DaysAfterInitiation>1</DaysAfterInitiation>",
    ] {
        assert!(document.contains(part), "{part}: {document}");
    }
    for left in [1, 0] {
        press_twice(&mut browser, &format!("{life}.querySelector('tbody')"), "Delete");
        browser.wait_for(&format!("{life}.querySelectorAll('tbody tr').length === {left}"));
    }
    assert_eq!(get(&server, "/photos?lifecycle").0, 404);
    let errors = browser.take_unexpected_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}

#[test]
fn console_sets_policies_cors_and_encryption() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut browser = open_settings(&server);

    let access = card("Access");
    let switch = format!("{access}.querySelector('[role=switch]')");
    browser.click(&switch);
    wait_for_text(&mut browser, &access, "Everyone may read all objects.");
    wait_for_text(&mut browser, &access, "public: everyone is allowed something");
    let policy: Value = serde_json::from_str(&get(&server, "/photos?policy").1).unwrap();
    assert_eq!(policy["Statement"][0]["Action"], serde_json::json!(["s3:GetObject"]));
    assert_eq!(browser.evaluate(&format!("{switch}.checked")), true);

    // The other statements of a policy remain when the switch is turned off.
    browser.click(&format!("{access}.querySelector('summary')"));
    let deny = r#"{"Sid":"Deny","Effect":"Deny","Principal":"*","Action":"s3:GetObject",
        "Resource":"arn:aws:s3:::photos/secret/*"}"#;
    let with_deny = format!(
        "((area) => {{ const policy = JSON.parse(area.value); policy.Statement.push({deny});
          area.value = JSON.stringify(policy); return true; }})({access}.querySelector('textarea'))"
    );
    browser.wait_for(&with_deny);
    browser.click(&button(&access, "Save"));
    wait_for_text(&mut browser, &access, "2 statements");
    browser.click(&switch);
    wait_for_text(&mut browser, &access, "1 statement");
    let policy: Value = serde_json::from_str(&get(&server, "/photos?policy").1).unwrap();
    assert_eq!(policy["Statement"][0]["Sid"], "Deny", "{policy}");
    assert_eq!(policy["Statement"].as_array().unwrap().len(), 1);

    // All templates are valid policies, and an error keeps the policy and says what is wrong.
    for at in 0..4 {
        browser.fill(&format!("{access}.querySelector('form select')"), &at.to_string());
        browser.picture(&format!("settings-policy-{at}.png"));
        browser.click(&button(&access, "Save"));
        wait_for_text(&mut browser, &access, "Saved.");
    }
    let policy = get(&server, "/photos?policy").1;
    assert!(policy.contains("s3:PutObject"), "{policy}");
    browser.fill(&format!("{access}.querySelector('textarea')"), "{}");
    browser.click(&button(&access, "Save"));
    wait_for_text(&mut browser, &access, "MalformedPolicy");
    browser.take_errors();
    press_twice(&mut browser, &access, "Make private");
    wait_for_text(&mut browser, &access, "The policy was removed.");
    assert_eq!(get(&server, "/photos?policy").0, 404);

    let cors = card("CORS");
    browser.click(&format!("{cors}.querySelector('summary')"));
    for (at, methods) in [(0, 2), (1, 5)] {
        browser.fill(&format!("{cors}.querySelector('form select')"), &at.to_string());
        browser.click(&button(&cors, "Save"));
        wait_for_text(&mut browser, &cors, "Saved.");
        let (_, document) = get(&server, "/photos?cors");
        assert_eq!(document.matches("<AllowedMethod>").count(), methods, "{document}");
    }
    let json = r#"{"CORSRules": [{"AllowedOrigins": ["*"], "AllowedMethods": ["GET"],
        "ExposeHeaders": ["ETag"], "MaxAgeSeconds": 9}]}"#;
    browser.fill(&format!("{cors}.querySelector('textarea')"), json);
    browser.click(&button(&cors, "Save"));
    browser.wait_for(&format!("{cors}.querySelector('textarea').value.includes('>9<')"));
    press_twice(&mut browser, &cors, "Remove");
    wait_for_text(&mut browser, &cors, "Removed.");

    // A server without encryption keys refuses a default, and says why.
    let encryption = card("Default encryption");
    browser.fill(&format!("{encryption}.querySelector('select')"), "AES256");
    browser.click(&button(&encryption, "Save"));
    wait_for_text(&mut browser, &encryption, "NotImplemented");
    browser.take_errors();

    browser.resize(360, 740);
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        let overflow = "((page) => page.scrollWidth - page.clientWidth)(document.documentElement)";
        assert_eq!(browser.evaluate(overflow), 0, "the settings are as wide as the screen");
        browser.picture(&format!("settings-phone-{scheme}.png"));
    }
    press_twice(&mut browser, &card("Deletion"), "Delete the bucket");
    browser.wait_for("location.hash === '#objects'");
    wait_for_text(&mut browser, "document.querySelector('#view-objects .empty')", "No buckets yet");
    let errors = browser.take_unexpected_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}

#[test]
fn console_sets_notifications_and_shows_event_targets() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (receiver, file) = (WebhookReceiver::start(), dir.path().join("events.toml"));
    std::fs::write(&file, format!("[webhook.orders]\nurl = \"{}\"\n", receiver.url())).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let options = ["--event-targets", file.to_str().unwrap()];
    let server = Server::start_with(&dir.path().join("data"), &options);
    let mut browser = open_settings(&server);
    let notifications = card("Notifications");
    wait_for_text(&mut browser, &notifications, "not set");
    browser.click(&format!("{notifications}.querySelector('summary')"));
    browser.fill(&format!("{notifications}.querySelector('form select')"), "0");
    browser.click(&button(&notifications, "Save"));
    wait_for_text(&mut browser, &notifications, "Saved.");
    assert!(get(&server, "/photos?notification").1.contains("arn:haul:sqs:::orders"));
    assert_eq!(server.client().request("PUT", "/photos/cat.jpg", b"").unwrap().status, 200);
    eventually("the event is delivered", || !receiver.take().is_empty());

    browser.evaluate("location.hash = '#storage'");
    let targets = "[...document.querySelectorAll('#view-storage .card')]\
                   .find((card) => card.innerText.includes('Event targets'))";
    wait_for_text(&mut browser, targets, "accepts events");
    browser.evaluate("location.hash = '#objects/photos?settings'");
    wait_for_text(&mut browser, &notifications, "1 rule");
    press_twice(&mut browser, &notifications, "Remove");
    wait_for_text(&mut browser, &notifications, "Removed.");
    assert!(!get(&server, "/photos?notification").1.contains("orders"));
    server.stop();
}
