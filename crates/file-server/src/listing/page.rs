//! Renders a directory as HTML, without scripts and external resources. Performs no I/O.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use haul_line_log::Utc;

use super::entry::{Entry, Listing};
use super::order::{Column, Order};
use crate::request::path::encoded;

const STYLE: &str = include_str!("page.css");

/// The resources that the page may load: its own style only.
pub(crate) const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Renders the directory at a decoded path, such as `/a/b/`, whose entries are in `order` if the
/// listing is whole.
pub(crate) fn page(path: &[u8], listing: &Listing, order: Order) -> String {
    let title = escaped(&String::from_utf8_lossy(path));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n<h1>{}</h1>\n<table>\n\
         <thead><tr>{}</tr></thead>\n<tbody>\n",
        breadcrumbs(path),
        head(listing, order),
    );
    if path != b"/" {
        page += "<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n";
    }
    for entry in &listing.entries {
        row(&mut page, entry);
    }
    page += "</tbody>\n</table>\n";
    if listing.is_continued {
        page += "<p><a href=\"./\">first page</a></p>\n";
    } else if listing.entries.is_empty() && listing.next.is_none() {
        page += "<p>This directory is empty.</p>\n";
    }
    if let Some(next) = &listing.next {
        let next = escaped(next);
        // Writing to a string does not fail.
        writeln!(page, "<p><a rel=\"next\" href=\"{next}\">next page</a></p>").unwrap_or_default();
    }
    page
}

/// Returns the heads of the columns. Those of a whole listing are links that sort it.
fn head(listing: &Listing, order: Order) -> String {
    let mut head = String::new();
    for column in Column::ALL {
        let title = match column {
            Column::Name => "name",
            Column::Size => "size",
            Column::Changed => "changed (UTC)",
        };
        let aria = match (order.column == column, order.is_descending) {
            (false, _) => "",
            (true, false) => " aria-sort=\"ascending\"",
            (true, true) => " aria-sort=\"descending\"",
        };
        let href = order.after_click(column).href();
        head += &match listing.is_whole() {
            true => format!("<th{aria}><a href=\"{href}\">{title}</a></th>"),
            false => format!("<th>{title}</th>"),
        };
    }
    head
}

/// Returns the path of the directory, with a link for each name.
fn breadcrumbs(path: &[u8]) -> String {
    let mut trail = "<a href=\"/\">/</a>".to_owned();
    let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    let mut href = b"/".to_vec();
    for name in names {
        href.extend_from_slice(name);
        href.push(b'/');
        let (href, name) = (encoded(&href), escaped(&String::from_utf8_lossy(name)));
        // Writing to a string does not fail.
        write!(trail, "<a href=\"{href}\">{name}/</a>").unwrap_or_default();
    }
    trail
}

fn row(page: &mut String, entry: &Entry) {
    let slash = if entry.bytes.is_none() { "/" } else { "" };
    let href = encoded(&entry.name);
    let name = escaped(&String::from_utf8_lossy(&entry.name));
    let size = entry.bytes.map(size).unwrap_or_default();
    let changed = Utc::of(UNIX_EPOCH + Duration::from_secs(entry.modified_s));
    writeln!(
        page,
        "<tr><td><a href=\"{href}{slash}\">{name}{slash}</a></td><td>{size}</td>\
         <td>{:04}-{:02}-{:02}<span> {:02}:{:02}</span></td></tr>",
        changed.year, changed.month, changed.day, changed.hour, changed.minute
    )
    .unwrap_or_default();
}

/// Escapes the characters that have a meaning in HTML, for text and quoted attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Formats a size: `512 B`, `1.5 KiB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut tenths, mut unit) = (u128::from(bytes) * 10 / 1024, 0);
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let entry = |name: &str| Entry { name: name.into(), bytes: Some(1536), modified_s: 0 };
        let entries = vec![
            entry("<script>alert('1')</script>"),
            entry("\" onclick=\"x"),
            entry("javascript:x"),
            entry("a b%20c?d#e"),
        ];
        let next = Some("?after=a%22&limit=5".to_owned());
        let listing = Listing { entries, is_continued: true, next };
        let page = page(b"/d<i>/", &listing, Order::default());
        assert!(page.contains("<a rel=\"next\" href=\"?after=a%22&amp;limit=5\">"), "{page}");
        assert!(!page.contains("<script") && !page.contains("<i>"), "{page}");
        assert!(!page.contains("href=\"javascript:") && !page.contains("\" onclick"), "{page}");
        assert!(page.contains("href=\"a%20b%2520c%3Fd%23e\">a b%20c?d#e</a>"), "{page}");
        assert!(page.contains("href=\"/d%3Ci%3E/\">d&lt;i&gt;/</a>"), "{page}");
        assert!(page.contains("<td>1.5 KiB</td><td>1970-01-01<span> 00:00</span></td>"), "{page}");
    }

    #[test]
    fn only_directories_below_the_root_link_to_their_parent() {
        let empty = Listing { entries: Vec::new(), is_continued: false, next: None };
        let page = |path: &[u8]| page(path, &empty, Order::default());
        assert!(!page(b"/").contains("../"));
        assert!(page(b"/a/").contains("href=\"../\""));
        assert!(page(b"/a/").contains("is empty"));
    }

    #[test]
    fn heads_of_a_whole_listing_sort_it() {
        let mut listing = Listing { entries: Vec::new(), is_continued: false, next: None };
        let order = Order { column: Column::Size, is_descending: false };
        let whole = page(b"/", &listing, order);
        for head in [
            "<th><a href=\"?sort=name\">name</a></th>",
            "<th aria-sort=\"ascending\"><a href=\"?sort=-size\">size</a></th>",
            "<th><a href=\"?sort=changed\">changed (UTC)</a></th>",
        ] {
            assert!(whole.contains(head), "{head}: {whole}");
        }
        listing.next = Some("?after=x".to_owned());
        assert!(!page(b"/", &listing, order).contains("?sort="), "other pages have more names");
    }

    #[test]
    fn sizes_are_formatted_with_units() {
        let formatted = [0, 1023, 1024, (1 << 20) - 1, 1 << 20, u64::MAX].map(size);
        assert_eq!(formatted, ["0 B", "1023 B", "1.0 KiB", "1023.9 KiB", "1.0 MiB", "15.9 EiB"]);
    }
}
