//! Listings of directories.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;

use crate::client::Client;
use crate::helper::{Running, ServedDir};

#[test]
fn listings_are_disabled_by_default() {
    let place = ServedDir::new();
    place.write("sub/a", "a");
    let running = place.serve(|_| {});
    assert_eq!(Client::new(running.address).get("/sub/", "").status, 404);
}

#[test]
fn listing_is_html_or_json_by_accept() {
    let place = ServedDir::new();
    place.write("sub/<b>&", "12345");
    place.write("sub/dir/x", "");
    place.write("sub/.hidden", "");
    let running = place.serve(|config| config.content.listings = true);
    let mut client = Client::new(running.address);
    let page = client.get("/sub/", "Accept: text/html, */*;q=0.8\r\n");
    assert_eq!((page.status, page.field("vary")), (200, Some("Accept")));
    assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.field("content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert!(page.text().contains("<a href=\"%3Cb%3E%26\">&lt;b&gt;&amp;</a>"), "{}", page.text());
    assert!(page.text().contains("prefers-color-scheme: dark"));
    assert!(!page.text().contains("hidden"));
    let json = client.get("/sub/", "Accept: application/json\r\n");
    assert_eq!(json.field("content-type"), Some("application/json"));
    let parsed: Value = serde_json::from_slice(&json.body).unwrap();
    let names: Vec<_> = parsed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["<b>&", "dir"]);
    for entry in parsed["entries"].as_array().unwrap() {
        let href = format!("/sub/{}", entry["href"].as_str().unwrap());
        assert_eq!(client.get(&href, "").status, 200, "{href}");
    }
    let head = client.ask("HEAD", "/sub/", "");
    assert_eq!(head.field("content-length"), Some(&*page.body.len().to_string()));
    assert_eq!(client.get("/sub", "").status, 301);
}

#[test]
fn listing_omits_links_out_of_the_root() {
    let place = ServedDir::new();
    place.write("secret", "12345");
    place.write("www/sub/a", "123");
    for (link, to) in [
        ("leak", "../../secret"),
        ("absolute", "/etc/passwd"),
        ("up", "../.."),
        ("magic", "/proc/self/root"),
        ("loop", "loop"),
        ("inside", "a"),
        ("dir", "../sub"),
    ] {
        std::os::unix::fs::symlink(to, place.path("www/sub").join(link)).unwrap();
    }
    let running = place.serve(|config| {
        config.dir = config.dir.join("www");
        config.content.listings = true;
    });
    let mut client = Client::new(running.address);
    let json = client.get("/sub/", "Accept: application/json\r\n");
    let parsed: Value = serde_json::from_slice(&json.body).unwrap();
    let row = |entry: &Value| (entry["name"].as_str().unwrap().to_owned(), entry["bytes"].as_u64());
    let rows: Vec<_> = parsed["entries"].as_array().unwrap().iter().map(row).collect();
    let expected = [("a", Some(3)), ("dir", None), ("inside", Some(3))];
    assert_eq!(rows, expected.map(|(name, bytes)| (name.to_owned(), bytes)));
    for name in ["leak", "absolute", "up/", "magic/", "loop"] {
        assert_eq!(client.get(&format!("/sub/{name}"), "").status, 404, "{name}");
    }
}

#[test]
fn listing_is_cached_until_the_directory_changes() {
    let place = ServedDir::new();
    place.write("www/a", "a");
    let dir = place.path("www");
    let running = place.serve(|config| {
        config.dir = config.dir.join("www");
        config.content.listings = true;
        config.tiers.valid = Duration::from_hours(1);
    });
    let mut client = Client::new(running.address);
    let mut names = |running: &Running| {
        let json = client.get("/", "Accept: application/json\r\n");
        let json: Value = serde_json::from_slice(&json.body).unwrap();
        let entries = json["entries"].as_array().unwrap();
        let names: Vec<_> =
            entries.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
        (names, running.stats().disk_jobs)
    };
    // Two changes within one tick of the kernel's clock leave the same time.
    let change = |change: &dyn Fn()| {
        let before = std::fs::metadata(&dir).unwrap().modified().unwrap();
        change();
        while std::fs::metadata(&dir).unwrap().modified().unwrap() == before {
            place.write("www/again", "");
            std::fs::remove_file(place.path("www/again")).unwrap();
        }
    };
    let (first, jobs) = names(&running);
    assert_eq!(first, ["a"]);
    assert_eq!(names(&running), (first, jobs), "the directory was not read again");
    assert!(running.stats().listings_bytes > 0);
    change(&|| drop(place.write("www/b", "b")));
    let (second, jobs) = names(&running);
    assert_eq!(second, ["a", "b"]);
    change(&|| std::fs::remove_file(place.path("www/a")).unwrap());
    assert_eq!(names(&running), (vec!["b".to_owned()], jobs + 1));
}

#[test]
fn slow_clients_share_the_memory_of_a_listing() {
    let place = ServedDir::new();
    for number in 0..5_000 {
        place.write(format!("www/{}-{number}", "a-long-name-".repeat(20)), "");
    }
    let running = place.serve(|config| {
        config.dir = config.dir.join("www");
        config.content.listings = true;
        config.tiers.valid = Duration::from_hours(1);
    });
    let mut stalled: Vec<_> = (0..30).map(|_| Client::new(running.address)).collect();
    for client in &mut stalled {
        client.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    let mut lengths = stalled.iter_mut().map(|client| {
        let head = client.head();
        head.field("content-length").unwrap().parse::<u64>().unwrap()
    });
    let bytes = lengths.next().unwrap();
    assert!(bytes > 2 << 20 && lengths.all(|other| other == bytes), "{bytes}");
    assert_eq!(running.stats().listings_bytes, bytes);
    let mut last = stalled.pop().unwrap();
    assert!(last.read_exact(usize::try_from(bytes).unwrap()).ends_with(b"</table>\n"));
}

/// Requests a page of the JSON listing of `/www/`; returns its names, and the reference to the next
/// page.
fn json_page(client: &mut Client, reference: &str) -> (Vec<String>, Option<String>) {
    let page = client.get(&format!("/www/{reference}"), "Accept: application/json\r\n");
    let page: Value = serde_json::from_slice(&page.body).unwrap();
    let entries = page["entries"].as_array().unwrap();
    let names = entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect();
    let next = page["next"].as_str().map(str::to_owned);
    assert_eq!(page["is_cut"].as_bool().unwrap(), next.is_some());
    (names, next)
}

/// Returns the names of all pages, and the number of pages; `before` runs before each page.
fn all_pages(
    client: &mut Client,
    first: &str,
    mut before: impl FnMut(usize),
) -> (Vec<String>, usize) {
    let (mut all, mut pages, mut reference) = (Vec::new(), 0, Some(first.to_owned()));
    while let Some(this) = reference {
        before(pages);
        let (names, next) = json_page(client, &this);
        all.extend(names);
        pages += 1;
        reference = next;
    }
    (all, pages)
}

fn with_files(names: impl Iterator<Item = String>) -> (ServedDir, Running, Vec<String>) {
    let place = ServedDir::new();
    std::fs::create_dir(place.path("www")).unwrap();
    let mut all: Vec<_> = names.collect();
    for name in &all {
        std::fs::File::create(place.path("www").join(name)).unwrap();
    }
    all.sort();
    let running = place.serve(|config| config.content.listings = true);
    (place, running, all)
}

#[test]
fn pages_list_each_of_25_000_names_once_in_order() {
    let (place, running, mut names) = with_files((0..25_000).map(|number| format!("f-{number}")));
    let mut client = Client::new(running.address);
    assert_eq!(all_pages(&mut client, "", |_| {}), (names.clone(), 3));
    assert_eq!(all_pages(&mut client, "?limit=6000", |_| {}), (names.clone(), 5));
    // Files that are added or removed between the pages may be listed or not. All others are.
    let (listed, _) = all_pages(&mut client, "?limit=3000", |page| {
        for number in 0..50 {
            place.write(format!("www/f-{}-{page}", number * 500), "");
        }
        std::fs::remove_file(place.path(format!("www/f-{}", 24_000 - page * 1000))).unwrap();
    });
    assert!(listed.is_sorted() && listed.windows(2).all(|pair| pair[0] != pair[1]));
    let listed: HashSet<_> = listed.into_iter().collect();
    names.retain(|name| place.path("www").join(name).exists() && !listed.contains(name));
    assert_eq!(names, Vec::<String>::new());
}

#[test]
fn next_links_lead_through_names_with_special_characters() {
    let special = ["&after=a", "a b", "a+b", "a\"b", "a%41", "a#b", "a?b", "a<b>", "\u{e4}", "z"];
    let (_place, running, names) = with_files(special.into_iter().map(str::to_owned));
    let mut client = Client::new(running.address);
    assert_eq!(all_pages(&mut client, "?limit=1", |_| {}), (names.clone(), names.len()));
    let (mut links, mut reference) = (0, "?limit=1".to_owned());
    loop {
        let page = client.get(&format!("/www/{reference}"), "");
        assert_eq!(page.text().contains("<a href=\"./\">first page</a>"), links > 0);
        assert_eq!(page.text().matches("<tr><td>").count(), 2, "the parent and one name");
        let Some((_, rest)) = page.text().split_once("<a rel=\"next\" href=\"") else { break };
        reference = rest.split_once('"').unwrap().0.replace("&amp;", "&");
        links += 1;
    }
    assert_eq!(links + 1, names.len());
    for query in ["?limit=0", "?limit=x", "?after=%2F", "?after=%0"] {
        assert_eq!(client.get(&format!("/www/{query}"), "").status, 400, "{query}");
    }
    assert_eq!(json_page(&mut client, "?after=zz"), (vec!["\u{e4}".to_owned()], None));
    assert_eq!(json_page(&mut client, "?after=%FF"), (Vec::new(), None));
}

#[test]
fn default_page_has_at_most_10_000_names() {
    let names = (0..10_000).map(|number| format!("a-file-with-a-name-of-usual-length-{number}"));
    let (place, running, _) = with_files(names);
    let mut client = Client::new(running.address);
    let mut page = || {
        let page = client.get("/www/?limit=999999", "");
        assert!(page.body.len() < 1 << 22, "{}", page.body.len());
        let rows = page.text().matches("<tr><td>").count() - 1;
        (rows, page.text().contains("next page"))
    };
    assert_eq!(page(), (10_000, false));
    place.write("www/one-more", "");
    assert_eq!(page(), (10_000, true));
}

#[test]
fn page_is_sorted_by_the_selected_column() {
    let place = ServedDir::new();
    for (name, length) in [("file10", 3), ("file9", 1), ("File1", 2)] {
        place.write(format!("sub/{name}"), "x".repeat(length));
    }
    place.write("sub/z/x", "");
    let running = place.serve(|config| config.content.listings = true);
    let mut client = Client::new(running.address);
    let mut order = |query: &str| -> Vec<String> {
        let page = client.get(&format!("/sub/{query}"), "Accept: text/html\r\n");
        assert_eq!(page.status, 200, "{query}");
        let text = page.text();
        let body = text.split_once("<tbody>").unwrap().1;
        let links = body.split("<a href=\"").skip(2);
        links.map(|link| link.split('"').next().unwrap().to_owned()).collect()
    };
    assert_eq!(order(""), ["z/", "File1", "file9", "file10"]);
    assert_eq!(order("?sort=-name"), ["z/", "file10", "file9", "File1"]);
    assert_eq!(order("?sort=size"), ["z/", "file9", "File1", "file10"]);
    assert_eq!(order("?sort=-size&limit=4"), ["z/", "file10", "File1", "file9"]);
    assert_eq!(order("?sort=-size&limit=3"), ["File1", "file10", "file9"], "one of two pages");
    assert_eq!(client.get("/sub/?sort=color", "").status, 400);
    let json = client.get("/sub/?sort=-size", "Accept: application/json\r\n");
    let parsed: Value = serde_json::from_slice(&json.body).unwrap();
    assert_eq!(parsed["entries"][0]["name"], "File1", "in bytewise order");
}
