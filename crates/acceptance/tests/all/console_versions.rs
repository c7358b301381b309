//! Lists, restores and deletes versions of objects in the console of `haul serve`, with Chromium.

use haul_testing::skip;

use crate::browser::Browser;
use crate::files::is_installed;
use crate::server::Server;

const ROWS: &str = "[...document.querySelectorAll('#view-objects tbody tr')]";

/// Sends a request of the console from its page, and returns the status.
fn send(browser: &mut Browser, method: &str, path: &str, headers: &str, body: &str) {
    let request = format!(
        "fetch('/s3{path}', {{ method: '{method}', body: {body}, headers: {{ 'X-Haul-Console': '1', {headers} }} }})
         .then((response) => response.status)"
    );
    let status = browser.evaluate(&request);
    assert!(status.as_f64().unwrap() < 300.0, "{method} {path}: {status}");
}

/// The path of an object with a name that is not a name in HTML and in URLs.
const PATH: &str = "/locked/dir%2F%3Cb%3E%20%26.txt";

/// Stores a locked version, a second version and a delete marker.
fn store_versions(browser: &mut Browser) {
    send(browser, "PUT", "/locked", "'x-amz-bucket-object-lock-enabled': 'true'", "null");
    let retention = "'x-amz-object-lock-mode': 'GOVERNANCE',
         'x-amz-object-lock-retain-until-date': new Date(Date.now() + 864e5).toISOString(),
         'x-amz-object-lock-legal-hold': 'ON'";
    send(browser, "PUT", PATH, retention, "'first'");
    send(browser, "PUT", PATH, "", "'second, longer'");
    send(browser, "DELETE", PATH, "", "null");
}

#[test]
fn console_lists_restores_and_deletes_versions() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut browser = Browser::open(&format!("http://{}/#objects", server.admin), 1200, 900);
    browser.wait_for("document.querySelector('#bucket-name')");
    store_versions(&mut browser);
    browser.evaluate("location.hash = 'objects/locked/dir%2F'");
    browser
        .wait_for("document.querySelector('#view-objects caption').textContent.endsWith('dir/')");
    let empty = browser.evaluate("document.querySelector('#view-objects tbody').innerText");
    assert!(empty.as_str().unwrap().starts_with("No objects."), "{empty}");
    browser.evaluate("document.querySelector('#with-versions').focus()");
    browser.evaluate("document.activeElement.click()");
    browser.wait_for(&format!("{ROWS}.length === 3"));
    let cells = "[...document.querySelectorAll('#view-objects tbody tr')].map((row) =>
        [...row.children].map((cell) => cell.innerText))";
    browser.wait_for(&format!("({cells})[2][4].includes('legal hold')"));
    let cells = browser.evaluate(cells);
    let text = |row: usize, cell: usize| cells[row][cell].as_str().unwrap().to_owned();
    assert_eq!(text(0, 0), "<b> &.txt", "names are text");
    assert!(text(0, 1).starts_with("delete marker") && text(1, 1).starts_with("older"), "{cells}");
    assert_eq!((text(1, 2), text(2, 2)), ("14 B".to_owned(), "5 B".to_owned()));
    assert_eq!(text(1, 4), "none");
    assert!(text(2, 4).starts_with("governance until "), "{cells}");
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        browser.picture(&format!("versions-{scheme}.png"));
    }
    browser.resize(360, 740);
    let overflow = "((page) => page.scrollWidth - page.clientWidth)(document.documentElement)";
    assert_eq!(browser.evaluate(overflow), 0, "the versions are as wide as the screen");
    browser.picture("versions-phone.png");
    browser.resize(1200, 900);

    // The locked version is not deleted: the server refuses it, and the page shows why.
    let button = |row: usize, text: &str| {
        format!(
            "[...{ROWS}[{row}].querySelectorAll('button')].find((b) => b.textContent === '{text}')"
        )
    };
    browser.evaluate(&format!("{}.click()", button(2, "Delete")));
    assert_eq!(browser.evaluate(&format!("{ROWS}.length")), 3, "the first press only asks");
    browser.evaluate(&format!("{}.click()", button(2, "Really?")));
    let refused =
        browser.wait_for("document.querySelector('#view-objects .message.bad')?.innerText");
    assert!(refused.as_str().unwrap().starts_with("AccessDenied"), "{refused}");
    browser.take_errors();

    browser.evaluate(&format!("{}.click()", button(2, "Restore")));
    browser.wait_for(&format!("{ROWS}.length === 4"));
    let get = || {
        let response = server.client().request("GET", PATH, b"").unwrap();
        (response.status, response.body)
    };
    assert_eq!(get(), (200, b"first".to_vec()));
    browser.wait_for(
        "document.querySelector('#view-objects .message').innerText.startsWith('Restored')",
    );
    // Without the restored version, the delete marker is current; without it, the second version.
    for left in [3, 2] {
        browser.evaluate(&format!("{}.click()", button(0, "Delete")));
        browser.evaluate(&format!("{}.click()", button(0, "Really?")));
        browser.wait_for(&format!("{ROWS}.length === {left}"));
    }
    assert_eq!(get(), (200, b"second, longer".to_vec()));
    assert!(browser.evaluate(&format!("{} === undefined", button(0, "Restore"))) == true);
    let errors = browser.take_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}
