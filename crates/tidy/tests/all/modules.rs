//! The modules of each library and program: the names that they use of each other, the cycles and
//! mutual pairs among them, and files that no module declares.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Source, assert_none, files, is_word_char};

/// A module path within a program.
type Module = Vec<String>;

/// A library or program of a crate.
pub(crate) struct Program<'a> {
    /// The folder of its sources, such as `crates/disk/src/`.
    pub(crate) root: String,
    modules: BTreeMap<Module, &'a Source>,
    /// For each module, the names it imports, with their paths from the root; `None` for names of
    /// other crates.
    imported: BTreeMap<Module, BTreeMap<String, Option<Module>>>,
}

/// A `use` declaration of one name.
struct Import {
    path: Module,
    name: String,
    is_public: bool,
}

/// Returns the libraries and programs of all crates.
pub(crate) fn programs(files: &[Source]) -> Vec<Program<'_>> {
    let mut by_root: BTreeMap<String, Vec<&Source>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_production()) {
        let Some((folder, below)) = file.path.split_once("/src/") else { continue };
        let program = below.strip_prefix("bin/").and_then(|below| below.split_once('/'));
        let program = program.map_or(String::new(), |(program, _)| format!("bin/{program}/"));
        by_root.entry(format!("{folder}/src/{program}")).or_default().push(file);
    }
    by_root.into_iter().map(|(root, files)| Program::new(root, &files)).collect()
}

impl<'a> Program<'a> {
    fn new(root: String, files: &[&'a Source]) -> Self {
        let module = |file: &&'a Source| (module(&file.path[root.len()..]), *file);
        let modules: BTreeMap<_, _> = files.iter().map(module).collect();
        let mut program = Self { root, modules, imported: BTreeMap::new() };
        for (module, file) in &program.modules {
            let name = |import: Import| (import.name, program.absolute(module, &import.path));
            let names = imports(file).into_iter().map(name).collect();
            program.imported.insert(module.clone(), names);
        }
        program
    }

    /// Returns the files with their modules.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Module, &'a Source)> {
        self.modules.iter().map(|(module, file)| (module, *file))
    }

    /// Returns, for each file, the files whose names it uses; re-exports are no uses.
    fn edges(&self) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let edges = |(module, file): (&Module, &'a Source)| {
            let imports = imports(file).into_iter().filter(|import| !import.is_public);
            let paths = imports.map(|import| import.path).chain(inline_paths(file));
            let targets = paths.filter_map(|path| self.target(&self.absolute(module, &path)?, 0));
            let targets = targets.map(|target| &*target.path);
            (&*file.path, targets.filter(|target| *target != file.path).collect())
        };
        self.files().map(edges).collect()
    }

    /// Returns the files that reach themselves by following uses.
    pub(crate) fn files_on_cycles(&self) -> Vec<String> {
        let edges = self.edges();
        let is_on_cycle = |start: &&&str| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![**start]);
            while let Some(file) = open.pop() {
                open.extend(
                    edges.get(file).into_iter().flatten().filter(|next| seen.insert(**next)),
                );
            }
            seen.contains(**start)
        };
        edges.keys().filter(is_on_cycle).map(|file| file[self.root.len()..].to_owned()).collect()
    }

    /// Returns the pairs of top-level modules that use names of each other.
    pub(crate) fn mutual_pairs(&self) -> Vec<String> {
        let mut uses = BTreeSet::new();
        for (module, file) in self.files() {
            let Some(from) = module.first() else { continue };
            let targets = paths(file).into_iter().filter_map(|path| self.absolute(module, &path));
            let targets = targets.filter_map(|path| self.top_level(&path));
            uses.extend(targets.map(|to| (from.clone(), to)));
        }
        let is_mutual = |(from, to): &&(String, String)| {
            from < to && uses.contains(&(to.clone(), from.clone()))
        };
        uses.iter().filter(is_mutual).map(|(from, to)| format!("{from} and {to}")).collect()
    }

    /// Returns the top-level module of a path from the root, which may be the name of a re-export.
    fn top_level(&self, path: &[String]) -> Option<String> {
        let first = path.first()?;
        let exported = self.imported.get(&Module::new()).and_then(|names| names.get(first));
        match exported {
            Some(path) => path.as_ref()?.first().cloned(),
            None => Some(first.clone()),
        }
    }

    /// Returns the file that defines a name which a module uses or defines.
    pub(crate) fn definition(&self, module: &Module, path: &[String]) -> Option<&'a Source> {
        let own = [module, path].concat();
        let path = self.absolute(module, path).unwrap_or(own);
        self.target(&path, 0)
    }

    /// Converts a path in the code of `module` to a path from the root; returns `None` for a path
    /// into another crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let mut base = match path.first()?.as_str() {
            "crate" => return Some(path[1..].to_vec()),
            "self" | "super" => module.clone(),
            child => {
                let below = [&module[..], &[child.to_owned()]].concat();
                self.modules.contains_key(&below).then(|| module.clone())?
            }
        };
        let is_relative = |word: &&String| ["self", "super"].contains(&word.as_str());
        let relative = path.iter().take_while(is_relative).count();
        for _ in path[..relative].iter().filter(|word| *word == "super") {
            base.pop()?;
        }
        base.extend_from_slice(&path[relative..]);
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
pub(crate) fn paths(file: &Source) -> Vec<Module> {
    imports(file).into_iter().map(|import| import.path).chain(inline_paths(file)).collect()
}

/// Returns the module of a file below the root.
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
    let mut imports = Vec::new();
    for declaration in split(file).0 {
        let (visibility, tree) = declaration.split_once("use ").unwrap_or_default();
        for mut path in expand(tree.trim()) {
            let last = path.pop().unwrap_or_default();
            let (word, name) = last.split_once(" as ").unwrap_or((&last, &last));
            path.push(word.to_owned());
            imports.push(Import { path, name: name.to_owned(), is_public: !visibility.is_empty() });
        }
    }
    imports
}

/// Splits the code of a file into its `use` declarations and the rest.
fn split(file: &Source) -> (Vec<String>, String) {
    let (mut uses, mut rest) = (Vec::new(), String::new());
    let mut lines = file.code().lines();
    while let Some(line) = lines.next() {
        if !is_use(line.trim_start()) {
            rest.extend([line, "\n"]);
            continue;
        }
        let mut declaration = line.trim().to_owned();
        while !declaration.ends_with(';') {
            let Some(line) = lines.next() else { break };
            declaration.extend([" ", line.trim()]);
        }
        uses.push(declaration.trim_end_matches(';').to_owned());
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
fn expand(tree: &str) -> Vec<Module> {
    let Some((before, group)) = tree.split_once('{') else {
        return vec![tree.split("::").map(|word| word.trim().to_owned()).collect()];
    };
    let group = group.trim_end().trim_end_matches('}');
    let mut depth = 0;
    let parts = group.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    parts
        .flat_map(|part| expand(part.trim_end_matches("self").trim_end_matches("::")))
        .map(|path| {
            let prefix = before.split("::").map(|word| word.trim().to_owned());
            prefix.chain(path).filter(|word| !word.is_empty()).collect()
        })
        .collect()
}

/// Returns the paths in the code of a file outside of `use` declarations, such as
/// `crate::units::Bytes`.
fn inline_paths(file: &Source) -> Vec<Module> {
    let (_, code) = split(file);
    let words = code.split(|c: char| !is_word_char(c) && c != ':');
    let paths = words.filter(|word| word.contains("::"));
    paths.map(|path| path.split("::").map(str::to_owned).collect()).collect()
}

/// Returns the Rust files that no other file declares as a module: they would never be compiled.
fn undeclared(files: &[Source]) -> Vec<String> {
    let rust: Vec<_> = files.iter().filter(|file| file.is_rust()).collect();
    let mut declared = BTreeSet::new();
    for file in &rust {
        let folder = file.path.trim_end_matches(".rs");
        let folder =
            ["/mod", "/lib", "/main"].iter().fold(folder, |it, name| it.trim_end_matches(name));
        let modules =
            file.text.lines().filter_map(|line| line.strip_suffix(';')?.rsplit_once("mod "));
        declared.extend(modules.map(|(_, name)| format!("{folder}/{name}")));
    }
    let is_lost = |file: &&&Source| {
        let module = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
        let (folder, name) = module.rsplit_once('/').unwrap_or_default();
        let is_program = ["/examples", "/src/bin", "/tests"].iter().any(|it| folder.ends_with(it));
        !is_program && !["lib", "main"].contains(&name) && !declared.contains(module)
    };
    rust.iter().filter(is_lost).map(|file| format!("{}: no file declares it", file.path)).collect()
}

#[test]
fn every_file_is_declared_as_a_module() {
    assert_none(&undeclared(files()));
}

fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(path, text)| Source::new(&format!("crates/a/{path}.rs"), text)).collect()
}

#[test]
fn undeclared_file_is_reported() {
    let count = |path: &str| {
        let main = ("tests/all/main", "mod reading;\nmod writing_much;\n");
        let reading = ("tests/all/reading/mod", "pub(crate) mod deep;\n");
        undeclared(&sources(&[main, reading, (&format!("tests/{path}"), "")])).len()
    };
    assert_eq!(["all/writing_much", "all/reading/deep", "other"].map(count), [0; 3]);
    assert_eq!(["all/writing", "all/reading/b"].map(count), [1; 2]);
}

#[test]
fn files_and_modules_that_use_each_other_are_found() {
    let lib = ("src/lib", "mod b;\nmod c;\npub use b::B;\n");
    let b = ("src/b", "use crate::c::{C, d::{D, E}};\n");
    for (c, expected) in [
        ("use crate::b::B;", 2),
        ("use crate::B;", 2),
        ("use super::{b::B, x};", 2),
        ("fn f() { crate::b::g() }", 2),
        ("use std::b::B;", 0),
        ("// use crate::b::B;", 0),
        ("\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n", 0),
    ] {
        let files = sources(&[lib, b, ("src/c", c)]);
        let program = &programs(&files)[0];
        assert_eq!(program.files_on_cycles().len(), expected, "{c}");
        assert_eq!(program.mutual_pairs().len(), expected / 2, "{c}");
    }
}

#[test]
fn a_parent_that_only_re_exports_is_on_no_cycle() {
    for (parent, expected) in [
        ("mod c;\npub(crate) use c::run;\npub struct Options;\n", 0),
        ("mod c;\nuse c::run;\npub struct Options;\n", 2),
        ("mod c;\npub struct Options;\nfn f() { c::run() }\n", 2),
    ] {
        let files = sources(&[("src/b/mod", parent), ("src/b/c", "use super::Options;\n")]);
        let program = &programs(&files)[0];
        assert_eq!(program.files_on_cycles().len(), expected, "{parent}");
        assert_eq!(program.mutual_pairs().len(), 0, "{parent}");
    }
}
