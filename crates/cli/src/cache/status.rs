//! `haul cache status`: shows how much of files is in the page cache.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use haul_disk::resident;
use haul_page_cache::{FoundFile, PageCounts, count_pages, open_quietly, page_bytes};
use serde_json::json;

use super::bar::{bar, windows};
use super::errors::{Errors, error_text};
use super::show::{CountsText, counts_json, in_bytes};
use crate::args::StatusArgs;
use crate::output::{Name, Output};
use crate::report::Result;
use crate::units::Count;

pub(super) fn run(args: &StatusArgs) -> Result {
    let errors = Errors::new(&args.files);
    let mut output = Output::new();
    let mut sum = PageCounts::default();
    let mut selection = Selection::new(args.top);
    for found in errors.find().iter() {
        match inspect(&found, args.all, &selection) {
            Ok((cached, row)) => {
                sum += cached;
                match row {
                    Some(row) if args.all => output.line(row.line(args.files.json))?,
                    Some(row) => selection.add(row),
                    None => {}
                }
            }
            Err(error) => errors.report(&error_text(&error)),
        }
    }
    let rows = selection.rows();
    for row in &rows {
        output.line(row.line(args.files.json))?;
    }
    if args.files.json {
        let mut summary = counts_json(&sum);
        summary["kind"] = json!("summary");
        output.line(summary)?;
    } else {
        let hidden = if args.all { 0 } else { sum.files - rows.len() as u64 };
        if hidden > 0 && !rows.is_empty() {
            output.line(format_args!("and {}; --files shows all", Count(hidden, "more file")))?;
        }
        output.line(CountsText(sum))?;
    }
    output.finish()?;
    errors.result()
}

/// Returns the page counts of a file, and the row of the file if the output may show this row.
fn inspect(
    found: &FoundFile,
    all: bool,
    selection: &Selection,
) -> haul_disk::Result<(PageCounts, Option<Row>)> {
    let fd = open_quietly(found)?;
    let cached = count_pages(&found.path, &fd)?;
    let row = (all || selection.accepts(found, &cached)).then(|| Row::of(found, cached, &fd));
    Ok((cached, row.transpose()?))
}

/// A row of the output, about one file.
#[derive(Debug)]
struct Row {
    path: PathBuf,
    named: bool,
    cached: PageCounts,
    /// For each cell of the bar, the number of cached pages and the number of pages.
    windows: Vec<(u64, u64)>,
}

impl Row {
    fn of(found: &FoundFile, cached: PageCounts, fd: &OwnedFd) -> haul_disk::Result<Self> {
        let (page, path) = (page_bytes(), found.path.clone());
        let windows = windows(cached.pages).map(|(first, pages)| {
            let resident = resident(fd, first * page, pages.saturating_mul(page))?;
            Ok((resident.resident_bytes / page, pages))
        });
        let windows = windows.collect::<haul_disk::Result<_>>()?;
        Ok(Self { path, named: found.named, cached, windows })
    }

    fn line(&self, as_json: bool) -> String {
        let path = self.path.to_string_lossy();
        let PageCounts { resident, pages, bytes, dirty, writeback, .. } = self.cached;
        if as_json {
            let share = |(resident, of): &(u64, u64)| *resident as f64 / (*of).max(1) as f64;
            return json!({
                "kind": "file", "path": path, "bytes": bytes, "pages": pages,
                "resident_pages": resident, "dirty_pages": dirty, "writeback_pages": writeback,
                "windows": self.windows.iter().map(share).collect::<Vec<_>>(),
            })
            .to_string();
        }
        format!(
            "{} {:>5.1} %  {:>10} of {:>10}  {}",
            bar(&self.windows),
            self.cached.percent(),
            in_bytes(resident).to_string(),
            in_bytes(pages).to_string(),
            Name(&path),
        )
    }
}

/// The files to show: all files named on the command line, and of the other files the `top_max`
/// files with the most cached pages.
#[derive(Debug)]
struct Selection {
    named: Vec<Row>,
    top: Vec<Row>,
    top_max: usize,
}

impl Selection {
    fn new(top_max: usize) -> Self {
        Self { named: Vec::new(), top: Vec::new(), top_max }
    }

    /// `true` if the file was named, or may be among the files with the most cached pages.
    fn accepts(&self, found: &FoundFile, cached: &PageCounts) -> bool {
        let last = self.top.get(self.top_max.saturating_sub(1));
        let beats_last = last.is_none_or(|last| last.cached.resident < cached.resident);
        found.named || self.top_max > 0 && cached.resident > 0 && beats_last
    }

    fn add(&mut self, row: Row) {
        if row.named {
            return self.named.push(row);
        }
        let resident = row.cached.resident;
        let at = self.top.partition_point(|other| other.cached.resident >= resident);
        self.top.insert(at, row);
        self.top.truncate(self.top_max);
    }

    fn rows(self) -> Vec<Row> {
        let mut rows = self.named;
        rows.extend(self.top);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_and_most_cached_files_are_selected() {
        let mut selection = Selection::new(2);
        for (name, named, resident) in [
            ("a", false, 1),
            ("b", true, 0),
            ("c", false, 5),
            ("d", false, 0),
            ("e", false, 5),
            ("f", false, 3),
            ("g", false, 9),
        ] {
            let cached = PageCounts { resident, pages: 9, ..PageCounts::default() };
            let found = FoundFile { path: name.into(), named, device: 0, inode: 0 };
            if selection.accepts(&found, &cached) {
                let windows = vec![(resident, 9)];
                selection.add(Row { path: found.path, named, cached, windows });
            }
        }
        let names: Vec<_> = selection.rows().into_iter().map(|row| row.path).collect();
        assert_eq!(names, ["b", "g", "c"].map(PathBuf::from));
        let none = Selection::new(0);
        let found = FoundFile { path: "a".into(), named: false, device: 0, inode: 0 };
        assert!(!none.accepts(&found, &PageCounts { resident: 1, ..PageCounts::default() }));
    }

    #[test]
    fn row_is_printed_as_text_and_as_json() {
        let cached = PageCounts {
            files: 1,
            bytes: 7000,
            pages: 2,
            resident: 1,
            dirty: 1,
            ..PageCounts::default()
        };
        let row = Row { path: "a\nb".into(), named: false, cached, windows: vec![(1, 1), (0, 1)] };
        let line = row.line(false);
        assert!(line.starts_with("▕█·▏") && line.ends_with("  a\\nb"), "{line}");
        assert!(line.contains(" 50.0 % "), "{line}");
        let json: serde_json::Value = serde_json::from_str(&row.line(true)).unwrap();
        assert_eq!((&json["path"], &json["resident_pages"]), (&json!("a\nb"), &json!(1)));
        assert_eq!(json["windows"], json!([1.0, 0.0]));
    }
}
