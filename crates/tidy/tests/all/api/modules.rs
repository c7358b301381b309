//! Reads the modules of a crate as syntax trees.

use std::collections::BTreeMap;

use syn::{Attribute, Item, ItemImpl, Meta, Visibility};

use crate::tree::Source;

/// The path of a module in its crate; empty for the root.
pub(super) type Path = Vec<String>;

/// A module of a crate, without the modules that are compiled only for tests.
#[derive(Default)]
pub(super) struct Module {
    /// All items but modules and implementations.
    pub(super) items: Vec<Item>,
    pub(super) impls: Vec<ItemImpl>,
    pub(super) children: BTreeMap<String, Child>,
}

pub(super) struct Child {
    pub(super) is_public: bool,
    pub(super) module: Module,
}

impl Module {
    /// Returns the module at a path below this one.
    pub(super) fn at(&self, path: &[String]) -> Option<&Self> {
        path.iter()
            .try_fold(self, |module, name| module.children.get(name).map(|child| &child.module))
    }

    /// Returns the item with this name.
    pub(super) fn item(&self, name: &str) -> Option<&Item> {
        self.items.iter().find(|item| name_of(item).is_some_and(|of_item| of_item == name))
    }

    /// Calls `visit` for this module and all modules below it, with their paths.
    pub(super) fn walk<'a>(&'a self, path: &mut Path, visit: &mut impl FnMut(&Path, &'a Self)) {
        visit(path, self);
        for (name, child) in &self.children {
            path.push(name.clone());
            child.module.walk(path, visit);
            path.pop();
        }
    }
}

/// Reads the crate whose sources are in `dir`.
pub(super) fn read(files: &[Source], dir: &str) -> Module {
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| &*file.text);
    let lib = text(&format!("{dir}/lib.rs")).expect(dir);
    module(parse(lib, dir), dir, &text)
}

fn parse(text: &str, name: &str) -> Vec<Item> {
    syn::parse_file(text).expect(name).items
}

/// Builds a module from its items. `dir` has the files of its submodules.
fn module<'a>(items: Vec<Item>, dir: &str, text: &impl Fn(&str) -> Option<&'a str>) -> Module {
    let mut built = Module::default();
    for item in items {
        match item {
            Item::Mod(child) if !is_for_tests(&child.attrs) => {
                let name = child.ident.to_string();
                let dir = format!("{dir}/{name}");
                let items = match child.content {
                    Some((_, items)) => items,
                    None => {
                        let file = text(&format!("{dir}.rs"));
                        let file = file.or_else(|| text(&format!("{dir}/mod.rs")));
                        parse(file.expect(&dir), &dir)
                    }
                };
                let is_public = is_public(&child.vis);
                let module = module(items, &dir, text);
                built.children.insert(name, Child { is_public, module });
            }
            Item::Mod(_) => {}
            Item::Impl(item) if !is_for_tests(&item.attrs) => built.impls.push(item),
            Item::Impl(_) => {}
            item => built.items.push(item),
        }
    }
    built
}

/// `true` for `#[cfg(test)]` and the like.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string() == "test",
        _ => false,
    })
}

pub(super) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns the name of an item, if it has one.
pub(super) fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}

pub(super) fn is_public_item(item: &Item) -> bool {
    match item {
        Item::Const(item) => is_public(&item.vis),
        Item::Enum(item) => is_public(&item.vis),
        Item::Fn(item) => is_public(&item.vis),
        Item::Macro(item) => item.attrs.iter().any(|a| a.path().is_ident("macro_export")),
        Item::Static(item) => is_public(&item.vis),
        Item::Struct(item) => is_public(&item.vis),
        Item::Trait(item) => is_public(&item.vis),
        Item::Type(item) => is_public(&item.vis),
        Item::Union(item) => is_public(&item.vis),
        _ => false,
    }
}
