//! Filters, selects, deletes, uploads and previews objects in the console, with Chromium.

use std::path::Path;

use haul_testing::skip;

use crate::browser::Browser;
use crate::files::is_installed;
use crate::server::{KEYS, Server};

const ROWS: &str = "[...document.querySelectorAll('#view-objects tbody tr')]";

fn row(text: &str) -> String {
    format!("{ROWS}.find((row) => row.innerText.includes('{text}'))")
}

fn button(within: &str, text: &str) -> String {
    format!(
        "[...{within}.querySelectorAll('button')].find((one) => one.textContent.startsWith('{text}'))"
    )
}

const VIEW: &str = "document.querySelector('#view-objects')";

/// Starts a server with the bucket `photos`, and opens it.
fn open(dir: &Path, objects: &[(&str, &[u8])]) -> (Server, Browser) {
    let server = Server::start(&dir.join("data"));
    let mut client = server.client();
    assert_eq!(client.request("PUT", "/photos", b"").unwrap().status, 200);
    for (key, content) in objects {
        let path = format!("/photos/{key}");
        assert_eq!(client.request("PUT", &path, content).unwrap().status, 200);
    }
    let url = format!("http://{}/#objects/photos", server.admin);
    (server, Browser::open(&url, 1200, 900))
}

fn keys(server: &Server) -> Vec<String> {
    let response = server.client().request("GET", "/photos?list-type=2", b"").unwrap();
    let text = String::from_utf8(response.body).unwrap();
    let keys = text.split("<Key>").skip(1).map(|rest| rest.split("</Key>").next().unwrap());
    keys.map(str::to_owned).collect()
}

#[test]
fn console_filters_and_selects_objects() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let objects: Vec<_> = (0..9).map(|at| format!("a{at}.jpg")).collect();
    let mut all: Vec<(&str, &[u8])> = objects.iter().map(|key| (&**key, &b"12"[..])).collect();
    all.extend([("b%01%26%3C.txt", &b"3"[..]), ("b2.txt", b"4"), ("c/d", b"5")]);
    let (server, mut browser) = open(dir.path(), &all);
    browser.wait_for(&format!("{ROWS}.length === 12"));
    let time = browser.evaluate("document.querySelector('#view-objects time').title");
    assert!(time.as_str().unwrap().ends_with('Z'), "the exact time: {time}");

    browser.fill("document.querySelector('#view-objects input[type=search]')", "b");
    browser.wait_for(&format!("{ROWS}.length === 2"));
    let selection = "document.querySelector('#view-objects .toolbar .fields')";
    browser.evaluate(&format!("{selection}.querySelector('input').focus()"));
    browser.press("Space");
    browser.wait_for(&format!("{selection}.innerText.includes('2 selected, 2 B')"));
    browser.click(&button(VIEW, "Delete selected"));
    assert_eq!(keys(&server).len(), 12, "the first press only asks");
    browser.click(&button(VIEW, "Really?"));
    browser.wait_for(&format!("{}.innerText.includes('No keys begin with b.')", VIEW));
    assert_eq!(keys(&server).len(), 10, "also a key that XML cannot contain");

    browser.fill("document.querySelector('#view-objects input[type=search]')", "");
    browser.wait_for(&format!("{ROWS}.length === 10"));
    for key in ["a3.jpg", "a5.jpg"] {
        browser.click(&format!("{}.querySelector('input')", row(key)));
    }
    browser.wait_for(&format!("{selection}.innerText.includes('2 selected, 4 B')"));
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        browser.picture(&format!("objects-selected-{scheme}.png"));
    }
    browser.resize(360, 740);
    let overflow = "((page) => page.scrollWidth - page.clientWidth)(document.documentElement)";
    assert_eq!(browser.evaluate(overflow), 0, "the objects are as wide as the screen");
    browser.picture("objects-selected-phone.png");
    browser.click(&button(VIEW, "Delete selected"));
    browser.click(&button(VIEW, "Really?"));
    browser.wait_for(&format!("{ROWS}.length === 8"));
    let left = keys(&server);
    assert!(!left.contains(&"a3.jpg".to_owned()) && left.contains(&"a4.jpg".to_owned()));
    let errors = browser.take_unexpected_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}

#[test]
fn console_creates_a_link_and_shows_when_it_ends() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = Server::start_with_keys(&dir.path().join("data"), &[]);
    let mut browser = Browser::open(&format!("http://{}/", server.admin), 1200, 900);
    browser.log_in(KEYS.0, KEYS.1);
    for path in ["/s3/photos", "/s3/photos/a.jpg"] {
        let put = format!(
            "fetch('{path}', {{ method: 'PUT', headers: {{ 'X-Haul-Console': '1' }} }})
                .then((response) => response.status)"
        );
        assert_eq!(browser.evaluate(&put), 200);
    }
    browser.evaluate("location.hash = 'objects/photos'");
    browser.wait_for(&row("a.jpg"));
    let choice = "document.querySelector('[aria-label=\"Link for a.jpg\"]')";
    browser.fill(choice, "3600");
    let link = "document.querySelector('[aria-label=\"Presigned link\"]')";
    let url = browser.wait_for(&format!("{link}?.value")).as_str().unwrap().to_owned();
    let message = format!("{link}.parentElement.innerText");
    let message = browser.evaluate(&message).as_str().unwrap().to_owned();
    assert!(message.contains("Valid until "), "{message}");
    let (host, target) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert_eq!(host, server.url().trim_start_matches("http://"));
    assert!(target.starts_with("photos/a.jpg?") && target.contains("X-Amz-Expires=3600"), "{url}");
    assert_eq!(server.client().request("GET", &format!("/{target}"), b"").unwrap().status, 200);
    server.stop();
}

#[test]
fn console_deletes_all_below_a_prefix() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let logs: Vec<_> = (0..2300).map(|at| format!("logs/{at}")).collect();
    let mut objects: Vec<(&str, &[u8])> = logs.iter().map(|key| (&**key, &b"x"[..])).collect();
    objects.push(("other", b"1"));
    let (server, mut browser) = open(dir.path(), &objects);
    let mut client = server.client();
    let panel = "document.querySelector('#view-objects section[aria-label^=\"Delete all\"]')";
    browser.click(&button(&row("logs/"), "Delete all"));
    browser.wait_for(&format!("{panel}.innerText.includes('2,300 objects, 2.25 KiB')"));
    browser.picture("objects-delete-all.png");
    let focused = browser.evaluate("document.activeElement.textContent");
    assert_eq!(focused, "Cancel", "a second press of Enter deletes nothing");
    browser.click(&button(panel, "Cancel"));
    assert_eq!(browser.evaluate(&format!("{panel}.hidden")), true);

    // It stops after the page that is being deleted.
    browser.click(&button(&row("logs/"), "Delete all"));
    let (delete, stop) = (button(panel, "Delete 2,300"), button(panel, "Stop"));
    browser.wait_for(&format!("(({delete}).click(), ({stop}).click(), true)"));
    browser.wait_for(&format!("{panel}.innerText.includes('1,000 deleted. Stopped.')"));
    let left = client.request("GET", "/photos?list-type=2&prefix=logs/", b"").unwrap().body;
    assert!(String::from_utf8(left).unwrap().contains("<Key>"), "some objects are left");
    browser.click(&button(panel, "Close"));
    browser.click(&button(&row("logs/"), "Delete all"));
    browser.click(&button(panel, "Delete "));
    browser.wait_for(&format!(
        "{panel}.innerText.includes(' deleted.') && !{panel}.innerText.includes('Stopped')"
    ));
    assert_eq!(keys(&server), ["other"]);
    browser.wait_for(&format!("{ROWS}.length === 1"));
    browser.click(&button(panel, "Close"));

    // With versioning, the versions are deleted on demand, and the bucket is empty then.
    let versioning = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    client.request("PUT", "/photos?versioning", versioning.as_bytes()).unwrap();
    client.request("PUT", "/photos/other", b"second").unwrap();
    browser.click(&button(VIEW, "Delete all shown"));
    browser.click(&format!("{panel}.querySelector('input')"));
    browser.click(&button(panel, "Delete 2 versions"));
    browser.wait_for(&format!("{panel}.innerText.includes('2 deleted.')"));
    let versions = client.request("GET", "/photos?versions", b"").unwrap().body;
    assert!(!String::from_utf8(versions).unwrap().contains("<Version>"));
    let errors = browser.take_unexpected_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}

#[test]
fn console_uploads_folders() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = dir.path().join("album");
    std::fs::create_dir_all(folder.join("ä b/c")).unwrap();
    for (path, content) in [("1.txt", "one"), ("ä b/2.txt", "two"), ("ä b/c/3.txt", "three")] {
        std::fs::write(folder.join(path), content).unwrap();
    }
    let (server, mut browser) = open(dir.path(), &[]);
    browser.wait_for("document.querySelector('#upload-folder')");
    browser.choose_files("document.querySelector('#upload-folder')", &[&folder]);
    browser.wait_for(&format!("{VIEW}.innerText.includes('3 of 3 uploaded')"));
    let expected = ["album/1.txt", "album/ä b/2.txt", "album/ä b/c/3.txt"];
    assert_eq!(keys(&server), expected);
    browser.picture("objects-uploaded.png");

    // The same by dropping the folder, below a prefix.
    browser.evaluate("location.hash = 'objects/photos/' + encodeURIComponent('album/')");
    browser.wait_for(&row("1.txt"));
    browser.drop_files("document.querySelector('#view-objects .drop')", &[&folder]);
    browser.wait_for(&row("album/"));
    assert_eq!(keys(&server).len(), 6, "{:?}", keys(&server));
    assert!(keys(&server).contains(&"album/album/ä b/c/3.txt".to_owned()));
    let errors = browser.take_unexpected_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}

/// A red pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
    \0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

/// A page and an image with scripts that would change the console.
const HTML: &[u8] = b"<!doctype html><script>top.document.title = 'evil'</script><p>text</p>";
const SVG: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg' onload='top.document.title = 1'>\
    <script>top.document.title = 'evil'</script></svg>";

#[test]
fn console_previews_objects_and_runs_nothing_in_them() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let evil_pdf = [b"%PDF-1.4\n".as_slice(), HTML].concat();
    let big = vec![b'x'; 300 << 10];
    let (server, mut browser) = open(
        dir.path(),
        &[
            ("pixel", PNG),
            ("page.html", HTML),
            ("image.svg", SVG),
            ("evil.pdf", &evil_pdf),
            ("zeros", &[0; 9]),
            ("big.txt", &big),
            ("empty", b""),
        ],
    );
    let title = browser.wait_for("document.title.includes('haul') && document.title");
    let show = |browser: &mut Browser, key: &str, shown: &str| {
        browser.click(&button(&row(key), "Preview"));
        browser.wait_for(&format!("document.querySelector('dialog[open] {shown}')"));
        browser.picture(&format!("preview-{key}.png"));
        let text = browser.evaluate("document.querySelector('dialog').innerText");
        browser.press("Escape");
        browser.wait_for("!document.querySelector('dialog')");
        text.as_str().unwrap().to_owned()
    };
    let text = show(&mut browser, "pixel", "canvas");
    assert!(text.contains("1 × 1 pixels"), "{text}");
    assert!(show(&mut browser, "page.html", "pre").contains("<script>top.document"));
    assert!(show(&mut browser, "image.svg", "pre").contains("onload="));
    assert!(show(&mut browser, "zeros", "[role=alert]").contains("neither an image"));
    let text = show(&mut browser, "big.txt", "pre");
    assert!(text.contains("the first 256 KiB of 300 KiB"), "{}", &text[..200]);
    show(&mut browser, "empty", "pre");
    show(&mut browser, "evil.pdf", "iframe");
    assert_eq!(browser.evaluate("document.title"), title, "no script has run");
    let errors = browser.take_unexpected_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}
