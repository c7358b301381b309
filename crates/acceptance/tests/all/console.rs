//! Opens the console of each server in Chromium, and uses it with the keyboard.

use haul_testing::skip;

use crate::browser::Browser;
use crate::files::is_installed;
use crate::http::Client;
use crate::program;
use crate::running::Running;
use crate::server::Server;

/// Waits until a server has recorded two rows of history, and then asserts that its console draws
/// them at once.
fn open_late(admin: &str, title: &str) -> Browser {
    let mut browser = Browser::open(&format!("http://{admin}/health"), 1200, 900);
    let recorded = "(async () => {
        for (;;) {
            const history = await (await fetch('/history.json')).json();
            if (history.rows.length > 1) return history.rows.length;
            await new Promise((done) => setTimeout(done, 300));
        }
    })()";
    browser.wait_for("location.pathname === '/health'");
    browser.evaluate(recorded);
    browser.navigate(&format!("http://{admin}/"));
    // A chart draws an area from two rows on. The page has requested the current values only once,
    // so these rows are of the time before.
    browser.wait_for("document.querySelector('#view-overview .plot path[d^=M]')");
    browser.wait_for("document.getElementById('health').textContent === 'healthy'");
    let texts = browser.evaluate("[document.title, document.querySelector('h1').textContent]");
    let host = std::process::Command::new("uname").arg("-n").output().unwrap().stdout;
    let host = String::from_utf8(host).unwrap().trim_end().to_owned();
    let expected = [format!("{host} – {title}"), format!("{title} on {host}")];
    assert_eq!(texts, serde_json::json!(expected), "tabs of several machines differ");
    browser
}

#[test]
fn console_shows_the_time_before_it_was_opened() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let www = dir.path().join("www");
    std::fs::create_dir(&www).unwrap();
    std::fs::write(www.join("small.txt"), "hello").unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut command = program::command();
    command.arg("files").arg(&www).args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let files = Running::start(&mut command);
    let options = ["--http", "--admin", "127.0.0.1:0"];
    let relay = Running::relay("127.0.0.1:0", &server.listen, &options);
    let admins = [&server.admin, files.admin(), relay.admin()];
    // The open connections and the object are values that are not 0.
    let clients = [&server.listen, files.address(), relay.address()].map(|address| {
        let mut client = Client::connect(address).unwrap();
        client.request("GET", "/small.txt", b"").unwrap();
        client.request("GET", "/no%20such%20file", b"").unwrap();
        client
    });
    for (admin, title) in admins.iter().zip(["haul serve", "haul files", "haul relay"]) {
        let mut browser = open_late(admin, title);
        browser.picture(&format!("{}.png", title.replace(' ', "-")));
        browser.evaluate("location.hash = 'metrics'");
        let rows = "document.querySelectorAll('#view-metrics tbody tr').length";
        browser.wait_for(&format!("{rows} > 10"));
        browser.evaluate(
            "(() => { const filter = document.querySelector('#view-metrics input');
              filter.value = 'process_open_fds'; filter.dispatchEvent(new Event('input')); })()",
        );
        browser.wait_for(&format!("{rows} === 1"));
        browser.evaluate("location.hash = 'requests'");
        browser.wait_for(
            "[...document.querySelectorAll('#view-requests td, #view-requests th')]
             .some((cell) => cell.textContent.endsWith(' /no such file'))",
        );
        let errors = browser.take_errors();
        assert!(errors.is_empty(), "{errors:#?}");
    }
    drop(clients);
    relay.stop();
    files.stop();
    server.stop();
}

#[test]
fn console_is_used_with_the_keyboard_on_small_and_dark_screens() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut client = server.client();
    assert_eq!(client.request("PUT", "/bucket", b"").unwrap().status, 200);
    let put = |client: &mut Client, key: &str| {
        client.request("PUT", &format!("/bucket/{key}"), &[7; 5000]).unwrap();
    };
    put(&mut client, "first");
    let mut browser = Browser::open(&format!("http://{}/", server.admin), 1200, 900);
    browser.wait_for("document.querySelector('.plot')");

    // The first element skips the navigation, and the next ones are the views.
    browser.press("Tab");
    let focused = "document.activeElement.textContent";
    assert_eq!(browser.evaluate(focused), "Skip to the content");
    browser.press("Tab");
    browser.press("Tab");
    assert_eq!(browser.evaluate(focused), "Requests");
    let outline = browser.evaluate("getComputedStyle(document.activeElement).outlineStyle");
    assert_eq!(outline, "solid", "the focus is visible");
    browser.press("Enter");
    browser.wait_for("document.querySelector('#view-requests:not([hidden]) caption')");
    assert_eq!(browser.evaluate("document.getElementById('view-overview').hidden"), true);
    let current = browser.evaluate("document.querySelector('nav [aria-current]').textContent");
    assert_eq!(current, "Requests");
    let headers = browser.evaluate(
        "[...document.querySelectorAll('#view-requests thead th')].every((th) => th.scope === 'col')
         && document.querySelector('#view-requests tbody th[scope=row]') !== null",
    );
    assert_eq!(headers, true);

    // The arrows move the cursor of a chart from one sample to the one before.
    browser.evaluate("location.hash = 'overview'");
    browser.evaluate("document.querySelector('input[value=live]').click()");
    put(&mut client, "second");
    browser.wait_for("document.querySelector('.plot').getAttribute('aria-valuemax') >= 2");
    browser.evaluate("document.querySelector('.plot').focus()");
    let value = "document.querySelector('.plot').getAttribute('aria-valuetext')";
    let now = browser.evaluate("document.querySelector('.plot').getAttribute('aria-valuenow')");
    browser.press("ArrowLeft");
    let at = browser.evaluate("document.querySelector('.plot').getAttribute('aria-valuenow')");
    let number = |value: &serde_json::Value| value.as_str().unwrap().parse::<u32>().unwrap();
    assert!(number(&at) < number(&now) + 1 && number(&at) + 2 >= number(&now), "{now} {at}");
    assert!(browser.evaluate(value).as_str().unwrap().contains("put "), "the values are readable");

    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        browser.resize(360, 740);
        for view in ["overview", "requests", "objects", "keys", "storage", "metrics"] {
            browser.evaluate(&format!("location.hash = '{view}'"));
            browser.wait_for(&format!(
                "document.querySelector('#view-{view}:not([hidden]) .card:not([hidden])')?.innerText"
            ));
            let overflow =
                "((page) => page.scrollWidth - page.clientWidth)(document.documentElement)";
            assert_eq!(browser.evaluate(overflow), 0, "{view} is as wide as the screen");
            browser.picture(&format!("{view}-{scheme}.png"));
        }
    }
    let dark = browser.evaluate("getComputedStyle(document.body).backgroundColor");
    browser.prefer("light");
    let light = browser.evaluate("getComputedStyle(document.body).backgroundColor");
    assert_ne!(dark, light);
    let errors = browser.take_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}

/// Puts two files into the view, as if the user had dropped them there.
const DROP: &str = "(() => {
    const files = new DataTransfer();
    files.items.add(new File(['hello'], 'ä b.txt', { type: 'text/plain' }));
    files.items.add(new File([new Uint8Array(300000)], 'zeros.bin'));
    const target = document.querySelector('#view-objects .drop');
    target.dispatchEvent(new DragEvent('drop', { bubbles: true, dataTransfer: files }));
})()";

#[test]
fn console_uploads_lists_links_and_deletes_objects() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut client = server.client();
    let mut put = |path: &str, body: &[u8]| {
        assert_eq!(client.request("PUT", path, body).unwrap().status, 200);
    };
    put("/photos", b"");
    (0..250).for_each(|number| put(&format!("/photos/2026/{number:03}.raw"), b"raw"));
    put("/photos/page.html", b"<script>parent.evil = document.evil = 1</script>");
    let mut browser = Browser::open(&format!("http://{}/#objects", server.admin), 1200, 900);
    let rows = "[...document.querySelectorAll('#view-objects tbody tr')]";
    let row = |text: &str| format!("{rows}.find((row) => row.innerText.includes('{text}'))");

    let bucket = browser.wait_for(&format!("{}?.innerText", row("photos")));
    assert!(bucket.as_str().unwrap().contains("251"), "the number of objects: {bucket}");
    browser.evaluate(&format!("{}.querySelector('a').click()", row("photos")));
    browser.wait_for(&row("page.html"));
    browser.picture("objects.png");

    // A prefix has pages.
    browser.evaluate(&format!("{}.querySelector('a').click()", row("2026/")));
    browser.wait_for(&format!("{rows}.length === 200"));
    browser.evaluate("[...document.querySelectorAll('#view-objects button')].pop().click()");
    browser.wait_for(&format!("{rows}.length === 250"));
    browser.wait_for(&row("249.raw"));

    browser.evaluate(DROP);
    let uploaded = "document.querySelectorAll('#view-objects progress[value=\"1\"]').length === 2";
    browser.wait_for(uploaded);
    let get = |path: &str| {
        let response = server.client().request("GET", path, b"").unwrap();
        (response.status, response.body)
    };
    assert_eq!(get("/photos/2026/%C3%A4%20b.txt"), (200, b"hello".to_vec()));
    assert_eq!(get("/photos/2026/zeros.bin").1.len(), 300_000);
    browser.evaluate("history.back()");
    browser.wait_for(&row("page.html"));

    // A link to the object works without the console.
    browser.evaluate(&format!(
        "(() => {{ const select = {}.querySelector('select'); select.value = '3600';
          select.dispatchEvent(new Event('change')); }})()",
        row("page.html")
    ));
    let link = "document.querySelector('#view-objects .message input')?.value";
    let link = browser.wait_for(link).as_str().unwrap().to_owned();
    assert_eq!(link, format!("{}/photos/page.html", server.url()));

    // The first press only asks.
    let delete = format!("{}.querySelector('button.danger')", row("page.html"));
    browser.evaluate(&format!("{delete}.click()"));
    assert_eq!(browser.evaluate(&format!("{delete}.textContent")), "Really?");
    assert_eq!(get("/photos/page.html").0, 200);
    browser.evaluate(&format!("{delete}.click()"));
    browser.wait_for(&format!("!{}", row("page.html")));
    assert_eq!(get("/photos/page.html").0, 404);
    let errors = browser.take_errors();
    assert!(errors.is_empty(), "{errors:#?}");

    // The request for the deleted object is among the refused ones.
    browser.evaluate("location.hash = 'requests'");
    browser.wait_for(
        "document.querySelector('#view-requests').innerText.includes('get /photos/page.html')",
    );
    browser.picture("requests.png");

    browser.evaluate("location.hash = 'storage'");
    browser.evaluate("document.querySelector('#view-storage button').click()");
    browser.wait_for("document.querySelectorAll('#view-storage .cells i').length === 64");
    browser.picture("storage.png");
    let errors = browser.take_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}

#[test]
fn console_names_the_disk_that_is_missing() {
    if !is_installed("chromium") {
        return skip("chromium is not installed");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let disks = ["d1", "d2", "d3"].map(|name| dir.path().join(name));
    let others = ["--data", disks[1].to_str().unwrap(), "--data", disks[2].to_str().unwrap()];
    Server::start_with(&disks[0], &others).stop();
    std::fs::rename(&disks[1], dir.path().join("away")).unwrap();
    let server = Server::start_with(&disks[0], &others);
    let mut browser = Browser::open(&format!("http://{}/#storage", server.admin), 1200, 900);
    browser
        .wait_for("document.querySelectorAll('#view-storage .stack .stack tbody tr').length > 2");
    let states = "[...document.querySelectorAll('#view-storage tr')]
        .map((row) => row.innerText).filter((text) => /\\/d[123]\\s/.test(text))";
    let states = browser.evaluate(states);
    let states: Vec<&str> =
        states.as_array().unwrap().iter().filter_map(|it| it.as_str()).collect();
    let (missing, others): (Vec<&str>, Vec<&str>) =
        states.iter().partition(|state| state.contains("d2\tmissing: "));
    assert_eq!((missing.len(), others.len()), (1, 2), "{states:?}");
    assert!(others.iter().all(|state| state.contains("\tworks\t")), "{states:?}");
    browser.picture("disks.png");
    let errors = browser.take_errors();
    assert!(errors.is_empty(), "{errors:#?}");
    server.stop();
}
