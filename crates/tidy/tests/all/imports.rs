//! Builds the import graph of a crate: the files whose names each file uses.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::Source;

/// A module path within a crate.
type Module = Vec<String>;

/// The files of one crate or program, by module.
pub(crate) struct Crate<'a> {
    modules: BTreeMap<Module, &'a Source>,
    /// For each module, the names it imports, with their full paths; `None` for names of other
    /// crates.
    imported: BTreeMap<Module, BTreeMap<String, Option<Vec<String>>>>,
}

/// A `use` declaration of one name.
struct Import {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

impl<'a> Crate<'a> {
    /// Builds the graph of the production files below `folder`, such as `crates/disk/src/`.
    pub(crate) fn new(folder: &str, files: impl Iterator<Item = &'a Source>) -> Self {
        let modules: BTreeMap<_, _> = files
            .filter_map(|file| Some((module(file.path.strip_prefix(folder)?), file)))
            .collect();
        let mut this = Self { modules, imported: BTreeMap::new() };
        for (module, file) in &this.modules {
            let name = |import: Import| (import.name, this.absolute(module, &import.path));
            let names = imports(file).into_iter().map(name).collect();
            this.imported.insert(module.clone(), names);
        }
        this
    }

    /// Returns, for each file, the files whose names it uses.
    pub(crate) fn edges(&self) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let mut edges = BTreeMap::new();
        for (module, file) in &self.modules {
            let imports = imports(file).into_iter().filter(|import| !import.is_public);
            let paths = imports.map(|import| import.path).chain(inline_paths(file));
            let targets = paths
                .filter_map(|path| self.target(&self.absolute(module, &path)?, 0))
                .map(|target| target.path.as_str())
                .filter(|target| *target != file.path);
            edges.insert(file.path.as_str(), targets.collect());
        }
        edges
    }

    /// Returns the files that reach themselves by following imports.
    pub(crate) fn files_on_cycles(&self) -> BTreeSet<&'a str> {
        let edges = self.edges();
        let is_on_cycle = |start: &&str| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![*start]);
            while let Some(file) = open.pop() {
                for next in edges.get(file).into_iter().flatten() {
                    if next == start {
                        return true;
                    }
                    if seen.insert(*next) {
                        open.push(next);
                    }
                }
            }
            false
        };
        edges.keys().copied().filter(is_on_cycle).collect()
    }

    /// Converts a path in the code of `module` to a path from the root of the crate; returns `None`
    /// for a path into another crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let first = path.first()?;
        let mut base = match first.as_str() {
            "crate" => return Some(path[1..].to_vec()),
            "self" | "super" => module.clone(),
            child => {
                let mut below = module.clone();
                below.push(child.to_owned());
                self.modules.contains_key(&below).then(|| module.clone())?
            }
        };
        let mut rest = path;
        while let Some(word @ ("self" | "super")) = rest.first().map(String::as_str) {
            if word == "super" {
                base.pop()?;
            }
            rest = &rest[1..];
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    /// Returns the file that defines the name of a path, following the imports of modules.
    fn target(&self, path: &[String], depth: usize) -> Option<&'a Source> {
        let longest = (0..=path.len()).rev().find(|n| self.modules.contains_key(&path[..*n]))?;
        let (module, rest) = path.split_at(longest);
        match rest.first().and_then(|name| self.imported[module].get(name)) {
            Some(path) if depth < 5 => self.target(path.as_ref()?, depth + 1),
            _ => self.modules.get(module).copied(),
        }
    }
}

/// Returns the paths that a file imports or contains in its code, such as `rustix::fs::fstat`.
pub(crate) fn paths(file: &Source) -> Vec<Vec<String>> {
    imports(file).into_iter().map(|import| import.path).chain(inline_paths(file)).collect()
}

/// Returns the module of a file below `src/`.
fn module(path: &str) -> Module {
    let path = path.trim_end_matches(".rs");
    let mut words: Vec<_> = path.split('/').map(str::to_owned).collect();
    if words.last().is_some_and(|word| ["mod", "lib", "main"].contains(&word.as_str())) {
        words.pop();
    }
    words
}

/// Returns the `use` declarations of a file, one for each name.
fn imports(file: &Source) -> Vec<Import> {
    let (uses, _) = split(file);
    let import = |text: &String| {
        let is_public = text.starts_with("pub");
        let tree = text.split_once("use ").map_or("", |(_, tree)| tree).trim();
        let import = move |mut path: Vec<String>| {
            let last = path.pop().unwrap_or_default();
            let (word, name) = last.split_once(" as ").unwrap_or((&last, &last));
            path.push(word.to_owned());
            Import { path, name: name.to_owned(), is_public }
        };
        expand(tree).into_iter().map(import).collect::<Vec<_>>()
    };
    uses.iter().flat_map(import).collect()
}

/// Splits the code of a file into its `use` declarations and the rest.
fn split(file: &Source) -> (Vec<String>, String) {
    let (mut uses, mut rest, mut open) = (Vec::new(), String::new(), None::<String>);
    for (_, line) in file.code() {
        let text = match open.take() {
            Some(begun) => begun + " " + line.trim(),
            None if is_use(line.trim_start()) => line.trim().to_owned(),
            None => {
                rest += &(line + "\n");
                continue;
            }
        };
        match text.trim_end().strip_suffix(';') {
            Some(whole) => uses.push(whole.to_owned()),
            None => open = Some(text),
        }
    }
    (uses, rest)
}

fn is_use(line: &str) -> bool {
    let after = line.strip_prefix("pub").map_or(line, |rest| match rest.find(')') {
        Some(end) if rest.starts_with('(') => rest[end + 1..].trim_start(),
        _ => rest.trim_start(),
    });
    after.starts_with("use ")
}

/// Expands the groups of a `use` tree.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let Some((before, group)) = tree.split_once('{') else {
        return vec![tree.split("::").map(|word| word.trim().to_owned()).collect()];
    };
    let group = group.trim_end().trim_end_matches('}');
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("one part at least").push(c);
    }
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts
        .flat_map(|part| expand(part.trim_end_matches("self").trim_end_matches("::")))
        .map(|path| {
            let prefix = before.split("::").map(str::trim).filter(|word| !word.is_empty());
            let path = path.into_iter().filter(|word| !word.is_empty());
            prefix.map(str::to_owned).chain(path).collect()
        })
        .collect()
}

/// Returns the paths in the code of a file outside of `use` declarations, such as
/// `crate::units::Bytes`.
fn inline_paths(file: &Source) -> impl Iterator<Item = Vec<String>> {
    let (_, code) = split(file);
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words: Vec<_> = code
        .split(|c: char| !is_path(c))
        .filter(|word| word.contains("::"))
        .map(|word| word.split("::").map(str::to_owned).collect())
        .collect();
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(files: &[(&str, &str)]) -> usize {
        let files: Vec<_> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        Crate::new("crates/a/src/", files.iter()).files_on_cycles().len()
    }

    #[test]
    fn files_that_use_each_other_are_on_a_cycle() {
        let lib = ("crates/a/src/lib.rs", "mod b;\nmod c;\npub use b::B;\n");
        let b = "use crate::c::{C, D};\n";
        for (c, expected) in [
            ("use crate::b::B;", 2),
            ("use crate::B;", 2),
            ("use super::{b::B, x};", 2),
            ("fn f() { crate::b::g() }", 2),
            ("use std::b::B;", 0),
            ("// use crate::b::B;", 0),
            ("\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n", 0),
        ] {
            let files = [lib, ("crates/a/src/b.rs", b), ("crates/a/src/c.rs", c)];
            assert_eq!(cycles(&files), expected, "{c}");
        }
    }

    #[test]
    fn a_parent_that_only_re_exports_is_on_no_cycle() {
        let child = ("crates/a/src/b/c.rs", "use super::Options;\n");
        let face = "mod c;\npub(crate) use c::run;\npub struct Options;\n";
        assert_eq!(cycles(&[("crates/a/src/b/mod.rs", face), child]), 0);
        let user = "mod c;\nuse c::run;\npub struct Options;\n";
        assert_eq!(cycles(&[("crates/a/src/b/mod.rs", user), child]), 2);
        let caller = "mod c;\npub struct Options;\nfn f() { c::run() }\n";
        assert_eq!(cycles(&[("crates/a/src/b/mod.rs", caller), child]), 2);
    }
}
