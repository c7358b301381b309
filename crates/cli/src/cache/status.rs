//! `haul cache status`.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use haul_disk::resident;
use serde_json::json;

use super::amount::{Cached, in_bytes, page_bytes};
use super::bar::{bar, windows};
use super::files::{Files, Found, Troubles, cached, open_quietly, words};
use crate::args::StatusArgs;
use crate::output::{Name, Output};
use crate::report::Result;
use crate::units::Count;

pub(super) fn run(args: &StatusArgs) -> Result {
    let troubles = Troubles::default();
    let mut output = Output::new();
    let mut sum = Cached::default();
    let mut chosen = Chosen::new(args.top);
    for found in Files::of(&args.files, &troubles).iter() {
        match look(&found, args.all, &chosen) {
            Ok((cached, row)) => {
                sum += cached;
                match row {
                    Some(row) if args.all => output.line(row.line(args.files.json))?,
                    Some(row) => chosen.take(row),
                    None => {}
                }
            }
            Err(error) => troubles.tell(&words(&error)),
        }
    }
    let rows = chosen.rows();
    for row in &rows {
        output.line(row.line(args.files.json))?;
    }
    if args.files.json {
        let mut summary = sum.json();
        summary["kind"] = json!("summary");
        output.line(summary)?;
    } else {
        let hidden = if args.all { 0 } else { sum.files - rows.len() as u64 };
        if hidden > 0 && !rows.is_empty() {
            output.line(format_args!("and {}; --files shows all", Count(hidden, "more file")))?;
        }
        output.line(sum)?;
    }
    output.finish()?;
    troubles.result()
}

/// What of a file is in memory; with its row, when it will be shown.
fn look(found: &Found, all: bool, chosen: &Chosen) -> haul_disk::Result<(Cached, Option<Row>)> {
    let fd = open_quietly(found)?;
    let cached = cached(&found.path, &fd)?;
    let row = (all || chosen.wants(found, &cached)).then(|| Row::of(found, cached, &fd));
    Ok((cached, row.transpose()?))
}

/// One file to be shown.
#[derive(Debug)]
struct Row {
    path: PathBuf,
    named: bool,
    cached: Cached,
    /// (pages in memory, pages) of each cell of its bar.
    windows: Vec<(u64, u64)>,
}

impl Row {
    fn of(found: &Found, cached: Cached, fd: &OwnedFd) -> haul_disk::Result<Self> {
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
        let Cached { resident, pages, bytes, dirty, writeback, .. } = self.cached;
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

/// The files that are shown: those that are named, and of the others those with the most in
/// memory.
#[derive(Debug)]
struct Chosen {
    named: Vec<Row>,
    top: Vec<Row>,
    top_max: usize,
}

impl Chosen {
    fn new(top_max: usize) -> Self {
        Self { named: Vec::new(), top: Vec::new(), top_max }
    }

    /// Whether a file may be among them, as far as is known now.
    fn wants(&self, found: &Found, cached: &Cached) -> bool {
        let last = self.top.get(self.top_max.saturating_sub(1));
        let beats_last = last.is_none_or(|last| last.cached.resident < cached.resident);
        found.named || self.top_max > 0 && cached.resident > 0 && beats_last
    }

    fn take(&mut self, row: Row) {
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
    fn the_files_with_the_most_in_memory_are_chosen_and_the_named_ones() {
        let mut chosen = Chosen::new(2);
        for (name, named, resident) in [
            ("a", false, 1),
            ("b", true, 0),
            ("c", false, 5),
            ("d", false, 0),
            ("e", false, 5),
            ("f", false, 3),
            ("g", false, 9),
        ] {
            let cached = Cached { resident, pages: 9, ..Cached::default() };
            let found = Found { path: name.into(), named, device: 0, inode: 0 };
            if chosen.wants(&found, &cached) {
                let windows = vec![(resident, 9)];
                chosen.take(Row { path: found.path, named, cached, windows });
            }
        }
        let names: Vec<_> = chosen.rows().into_iter().map(|row| row.path).collect();
        assert_eq!(names, ["b", "g", "c"].map(PathBuf::from));
        let none = Chosen::new(0);
        let found = Found { path: "a".into(), named: false, device: 0, inode: 0 };
        assert!(!none.wants(&found, &Cached { resident: 1, ..Cached::default() }));
    }

    #[test]
    fn a_row_is_a_line_for_people_and_an_object_for_programs() {
        let cached =
            Cached { files: 1, bytes: 7000, pages: 2, resident: 1, dirty: 1, ..Cached::default() };
        let row = Row { path: "a\nb".into(), named: false, cached, windows: vec![(1, 1), (0, 1)] };
        let line = row.line(false);
        assert!(line.starts_with("▕█·▏") && line.ends_with("  a\\nb"), "{line}");
        assert!(line.contains(" 50.0 % "), "{line}");
        let json: serde_json::Value = serde_json::from_str(&row.line(true)).unwrap();
        assert_eq!((&json["path"], &json["resident_pages"]), (&json!("a\nb"), &json!(1)));
        assert_eq!(json["windows"], json!([1.0, 0.0]));
    }
}
