//! Directories, listed.

use std::time::Duration;

use serde_json::Value;

use crate::client::Client;
use crate::helper::{Place, Running};

#[test]
fn listings_are_off_unless_asked_for() {
    let place = Place::new();
    place.write("sub/a", "a");
    let running = place.serve(|_| {});
    assert_eq!(Client::new(running.address).get("/sub/", "").status, 404);
}

#[test]
fn a_listing_is_a_page_for_people_and_json_for_programs() {
    let place = Place::new();
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
    let told: Value = serde_json::from_slice(&json.body).unwrap();
    let names: Vec<_> = told["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["dir", "<b>&"]);
    for entry in told["entries"].as_array().unwrap() {
        let href = format!("/sub/{}", entry["href"].as_str().unwrap());
        assert_eq!(client.get(&href, "").status, 200, "{href}");
    }
    let head = client.ask("HEAD", "/sub/", "");
    assert_eq!(head.field("content-length"), Some(&*page.body.len().to_string()));
    assert_eq!(client.get("/sub", "").status, 301);
}

#[test]
fn a_listing_tells_nothing_of_what_is_outside_the_root() {
    let place = Place::new();
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
    let told: Value = serde_json::from_slice(&json.body).unwrap();
    let row = |entry: &Value| (entry["name"].as_str().unwrap().to_owned(), entry["bytes"].as_u64());
    let rows: Vec<_> = told["entries"].as_array().unwrap().iter().map(row).collect();
    let expected = [("dir", None), ("a", Some(3)), ("inside", Some(3))];
    assert_eq!(rows, expected.map(|(name, bytes)| (name.to_owned(), bytes)));
    for name in ["leak", "absolute", "up/", "magic/", "loop"] {
        assert_eq!(client.get(&format!("/sub/{name}"), "").status, 404, "{name}");
    }
}

#[test]
fn a_listing_is_shared_until_the_directory_changes() {
    let place = Place::new();
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
    assert_eq!(names(&running), (first, jobs), "nobody read it again");
    assert!(running.stats().listings_bytes > 0);
    change(&|| drop(place.write("www/b", "b")));
    let (second, jobs) = names(&running);
    assert_eq!(second, ["a", "b"]);
    change(&|| std::fs::remove_file(place.path("www/a")).unwrap());
    assert_eq!(names(&running), (vec!["b".to_owned()], jobs + 1));
}

#[test]
fn clients_who_do_not_read_a_listing_share_its_memory() {
    let place = Place::new();
    for number in 0..5_000 {
        place.write(format!("www/{}-{number}", "a-long-name-".repeat(20)), "");
    }
    let running = place.serve(|config| {
        config.dir = config.dir.join("www");
        config.content.listings = true;
        config.tiers.valid = Duration::from_hours(1);
    });
    let mut stuck: Vec<_> = (0..30).map(|_| Client::new(running.address)).collect();
    for client in &mut stuck {
        client.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    let mut lengths = stuck.iter_mut().map(|client| {
        let head = client.head();
        head.field("content-length").unwrap().parse::<u64>().unwrap()
    });
    let bytes = lengths.next().unwrap();
    assert!(bytes > 2 << 20 && lengths.all(|other| other == bytes), "{bytes}");
    assert_eq!(running.stats().listings_bytes, bytes);
    let mut last = stuck.pop().unwrap();
    assert!(last.read_exact(usize::try_from(bytes).unwrap()).ends_with(b"</table>\n"));
}

#[test]
fn a_long_directory_is_cut_and_says_so() {
    let place = Place::new();
    for number in 0..10_000 {
        place.write(format!("www/a-file-with-a-name-of-usual-length-{number}"), "");
    }
    let running = place.serve(|config| {
        config.dir = config.dir.join("www");
        config.content.listings = true;
    });
    let mut client = Client::new(running.address);
    let mut told = || {
        let page = client.get("/", "");
        let json = client.get("/", "Accept: application/json\r\n");
        let json: Value = serde_json::from_slice(&json.body).unwrap();
        assert!(page.body.len() < 1 << 22, "{}", page.body.len());
        let rows = page.text().matches("<tr><td>").count();
        assert_eq!((rows, json["entries"].as_array().unwrap().len()), (10_000, 10_000));
        let says = page.text().contains("The list is truncated: only 10000 names are shown.");
        (says, json["is_cut"].as_bool().unwrap())
    };
    assert_eq!(told(), (false, false));
    place.write("www/one-more", "");
    assert_eq!(told(), (true, true));
}
