//! Finds the items and modules to which names refer.

use syn::{Item, UseTree, Visibility};

use super::modules::{Module, Path};

/// An item: the path of its module, and its name.
pub(super) type Place = (Path, String);

/// The meaning of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// An item of this crate.
    Item(Place),
    /// A module of this crate.
    Module(Path),
    /// A name of another crate, or one that is below an item of this crate.
    Outside,
}

/// A name that a `use` declaration brings into a module.
pub(super) struct Import<'a> {
    pub(super) name: String,
    pub(super) path: Vec<String>,
    pub(super) visibility: &'a Visibility,
}

/// Returns the names that the `use` declarations of a module bring in.
pub(super) fn imports(module: &Module) -> Vec<Import<'_>> {
    let mut imports = Vec::new();
    for item in &module.items {
        if let Item::Use(item) = item {
            let mut add = |name: String, path: &[String]| {
                imports.push(Import { name, path: path.to_vec(), visibility: &item.vis });
            };
            flatten(&item.tree, &mut Vec::new(), &mut add);
        }
    }
    imports
}

fn flatten(tree: &UseTree, path: &mut Vec<String>, add: &mut impl FnMut(String, &[String])) {
    let before = path.len();
    match tree {
        UseTree::Path(tree) => {
            path.push(tree.ident.to_string());
            flatten(&tree.tree, path, add);
        }
        UseTree::Name(tree) if tree.ident == "self" => {
            add(path.last().cloned().unwrap_or_default(), path);
        }
        UseTree::Name(tree) => {
            path.push(tree.ident.to_string());
            add(tree.ident.to_string(), path);
        }
        UseTree::Rename(tree) => {
            if tree.ident != "self" {
                path.push(tree.ident.to_string());
            }
            add(tree.rename.to_string(), path);
        }
        UseTree::Glob(_) => add("*".to_owned(), path),
        UseTree::Group(tree) => tree.items.iter().for_each(|tree| flatten(tree, path, add)),
    }
    path.truncate(before);
}

/// Finds the item or module to which `path` refers in the module at `from`.
pub(super) fn resolve(root: &Module, from: &[String], path: &[String]) -> Target {
    let (mut at, mut rest) = (from.to_vec(), path);
    while let Some((first, after)) = rest.split_first() {
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            _ => break,
        }
        rest = after;
    }
    let Some((first, after)) = rest.split_first() else { return Target::Module(at) };
    let Some(module) = root.at(&at) else { return Target::Outside };
    if module.children.contains_key(first) {
        at.push(first.clone());
        return match after {
            [] => Target::Module(at),
            _ => resolve(root, &at, after),
        };
    }
    if after.is_empty() && module.item(first).is_some() {
        return Target::Item((at, first.clone()));
    }
    // A path such as that of `use thiserror::Error` begins with the name of a crate. A name that
    // imports itself, as `use a;` does, would be looked up forever.
    let imports = imports(module);
    let import = imports.iter().find(|import| import.name == *first && import.path[0] != *first);
    match import.map(|import| resolve(root, &at, &import.path)) {
        Some(Target::Module(path)) if !after.is_empty() => resolve(root, &path, after),
        Some(target) if after.is_empty() => target,
        _ => Target::Outside,
    }
}
