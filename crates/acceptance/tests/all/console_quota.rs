//! Sets the quota of a bucket in the console of `haul serve`, with Chromium.

use haul_testing::skip;

use crate::browser::Browser;
use crate::files::is_installed;
use crate::server::Server;

/// The element for the quota of the bucket that is shown.
const CARD: &str = "document.querySelector('#view-objects .quota')";

/// Fills in the form, and sends it.
fn set(browser: &mut Browser, bytes: &str, objects: &str) {
    let fill = format!(
        "(([size, objects]) => {{ size.value = '{bytes}'; objects.value = '{objects}'; }})\
         ({CARD}.querySelectorAll('input'))"
    );
    browser.evaluate(&fill);
    browser.evaluate(&format!("{CARD}.querySelector('button').click()"));
}

fn wait_for_message(browser: &mut Browser, text: &str) {
    browser.wait_for(&format!("{CARD}.querySelector('.message').textContent.includes('{text}')"));
}

#[test]
fn console_shows_sets_and_removes_a_quota() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = Server::start(&dir.path().join("data"));
    let put = |path: &str, body: &[u8]| {
        let response = server.client().request("PUT", path, body).unwrap();
        response.status
    };
    assert_eq!(put("/limited", b""), 200);
    assert_eq!(put("/limited/key", &[7; 512]), 200);
    let mut browser =
        Browser::open(&format!("http://{}/#objects/limited?settings", server.admin), 1200, 900);
    browser.wait_for(CARD);
    let text = |browser: &mut Browser| {
        let text = browser.evaluate(&format!("{CARD}.querySelector('p').textContent"));
        text.as_str().unwrap().to_owned()
    };
    assert!(text(&mut browser).ends_with("512 B, 1 objects; no quota"), "{}", text(&mut browser));
    set(&mut browser, "1 KiB", "10");
    wait_for_message(&mut browser, "The quota was set");
    assert!(text(&mut browser).contains("512 B of "), "{}", text(&mut browser));
    assert!(text(&mut browser).ends_with(", 1 of 10"), "{}", text(&mut browser));
    let field = browser.evaluate(&format!("{CARD}.querySelector('input').value"));
    assert_eq!(field, "1 KiB");
    assert_eq!((put("/limited/other", &[7; 513]), put("/limited/other", &[7; 512])), (403, 200));
    set(&mut browser, "much", "");
    wait_for_message(&mut browser, "is no size");
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        browser.picture(&format!("quota-{scheme}.png"));
    }
    browser.evaluate("location.hash = 'objects'");
    let row = "document.querySelector('#view-objects tbody tr')";
    browser.wait_for(&format!("{row}.children[3].textContent.endsWith(', 2 of 10')"));
    browser.evaluate("location.hash = 'objects/limited?settings'");
    browser.wait_for(CARD);
    set(&mut browser, "", "");
    wait_for_message(&mut browser, "The quota was removed");
    assert_eq!(put("/limited/third", &[7; 5000]), 200);
    let errors = browser.take_unexpected_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}
