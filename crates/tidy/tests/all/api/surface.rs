//! Lists the public items of a crate under the paths by which other crates use them.

use std::collections::{BTreeMap, BTreeSet};

use syn::{ImplItem, Item, ItemImpl, ItemMod, parse_quote};

use super::imports::{Place, Target, imports, resolve};
use super::modules::{Module, Path, is_public, is_public_item, name_of};
use super::strip;

/// An item under the name by which a module exports it.
struct Export {
    name: String,
    target: Exported,
}

enum Exported {
    Item(Place),
    Module(Path),
    /// The path of an item of another crate.
    Outside(Vec<String>),
}

/// Returns the names that the module at `path` exports, in their order.
fn exports(root: &Module, path: &Path) -> Vec<Export> {
    let Some(module) = root.at(path) else { return Vec::new() };
    let mut exports = Vec::new();
    for item in module.items.iter().filter(|item| is_public_item(item)) {
        let name = name_of(item).unwrap_or_default();
        exports.push(Export { target: Exported::Item((path.clone(), name.clone())), name });
    }
    for name in module.children.iter().filter(|(_, child)| child.is_public).map(|(name, _)| name) {
        let target = Exported::Module([path.as_slice(), std::slice::from_ref(name)].concat());
        exports.push(Export { target, name: name.clone() });
    }
    for import in imports(module).into_iter().filter(|import| is_public(import.visibility)) {
        let target = match resolve(root, path, &import.path) {
            Target::Item(place) => Exported::Item(place),
            Target::Module(path) => Exported::Module(path),
            Target::Outside => Exported::Outside(import.path),
        };
        exports.push(Export { target, name: import.name });
    }
    exports.sort_by(|a, b| a.name.cmp(&b.name));
    exports
}

/// Adds the items that the module at `path` and its public modules export.
fn collect(root: &Module, path: &Path, places: &mut BTreeSet<Place>) {
    for export in exports(root, path) {
        match export.target {
            Exported::Item(place) => {
                places.insert(place);
            }
            Exported::Module(path) => collect(root, &path, places),
            Exported::Outside(_) => {}
        }
    }
}

/// The implementations of a crate, by the exported item that they belong to.
type Impls = BTreeMap<Place, Vec<ItemImpl>>;

/// Assigns each implementation to its type, or to its trait if the type is of another crate. An
/// implementation of a private trait, or for a private type, is not listed.
fn implementations(root: &Module, exported: &BTreeSet<Place>) -> Impls {
    let mut impls = Impls::new();
    root.walk(&mut Vec::new(), &mut |path, module| {
        for item in &module.impls {
            let target = |segments: Vec<String>| resolve(root, path, &segments);
            let of_type = strip::type_path(&item.self_ty).map_or(Target::Outside, target);
            let of_trait = item.trait_.as_ref().map(|(_, name, _)| target(strip::segments(name)));
            let is_hidden = |target: &Target| match target {
                Target::Item(place) => !exported.contains(place),
                _ => false,
            };
            if is_hidden(&of_type) || of_trait.as_ref().is_some_and(is_hidden) {
                continue;
            }
            let owner = match (of_type, of_trait) {
                (Target::Item(place), _) | (_, Some(Target::Item(place))) => place,
                _ => continue,
            };
            impls.entry(owner).or_default().extend(strip::implementation(item));
        }
    });
    impls
}

/// Returns the items that the module at `path` exports. Each implementation is listed once.
fn items(root: &Module, path: &Path, impls: &mut Impls) -> Vec<Item> {
    let mut items = Vec::new();
    for Export { name, target } in exports(root, path) {
        match target {
            Exported::Outside(segments) => items.push(outside(&segments, &name)),
            Exported::Module(path) => {
                let mut module: ItemMod = parse_quote!(
                    pub mod module {}
                );
                module.ident = syn::Ident::new(&name, module.ident.span());
                module.content = Some((Default::default(), self::items(root, &path, impls)));
                items.push(Item::Mod(module));
            }
            Exported::Item(place) => {
                let found = root.at(&place.0).and_then(|module| module.item(&place.1));
                items.extend(found.map(|item| strip::item(item, &name)));
                let own = merged(impls.remove(&place).unwrap_or_default());
                items.extend(own.into_iter().map(Item::Impl));
            }
        }
    }
    items
}

/// Sorts the implementations of an item, and merges those that have the same generics: it does not
/// matter in which of them a method is.
fn merged(impls: Vec<ItemImpl>) -> Vec<ItemImpl> {
    let mut merged: BTreeMap<(bool, String), ItemImpl> = BTreeMap::new();
    for mut item in impls {
        let members = std::mem::take(&mut item.items);
        let is_of_trait = item.trait_.is_some();
        merged.entry((is_of_trait, text(&item))).or_insert(item).items.extend(members);
    }
    let mut merged: Vec<_> = merged.into_values().collect();
    for item in &mut merged {
        item.items.sort_by_cached_key(|member| match member {
            ImplItem::Const(constant) => (0, constant.ident.to_string()),
            ImplItem::Type(of) => (1, of.ident.to_string()),
            ImplItem::Fn(method) => (2, method.sig.ident.to_string()),
            _ => (3, String::new()),
        });
    }
    merged
}

fn text(item: &ItemImpl) -> String {
    let items = vec![Item::Impl(item.clone())];
    prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items })
}

/// Returns the declaration that exports an item of another crate.
fn outside(segments: &[String], name: &str) -> Item {
    let path = segments.join("::");
    let declaration = match segments.last() {
        Some(last) if last != name && name != "*" => format!("pub use {path} as {name};"),
        _ if name == "*" => format!("pub use {path}::*;"),
        _ => format!("pub use {path};"),
    };
    syn::parse_str(&declaration).expect(&declaration)
}

/// Returns the public items of a crate as Rust without bodies.
pub(super) fn listing(root: &Module) -> String {
    let mut exported = BTreeSet::new();
    collect(root, &Vec::new(), &mut exported);
    let mut impls = implementations(root, &exported);
    let items = items(root, &Vec::new(), &mut impls);
    let text = prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items });
    text.replace(strip::PRIVATE, "// private fields")
}

#[test]
fn listing_has_public_items_with_their_signatures() {
    use crate::tree::Source;

    let source = |path: &str, text: &str| Source::new(&format!("crates/a/src/{path}"), text);
    let files = [
        source(
            "lib.rs",
            "mod b; pub mod open; use b::Inner; pub use b::{Kept as Renamed, Trait}; \
             pub use other::Thing; pub const MAX: u8 = 3; fn private() {} \
             impl Trait for u8 { type Out = u8; fn f(&self) {} }",
        ),
        source(
            "b/mod.rs",
            "mod deep; pub use deep::Kept; pub trait Trait { type Out; fn f(&self) { g() } \
             fn h(&self); } pub(crate) struct Inner; trait Hidden {} \
             impl Hidden for Kept {} impl Inner { pub fn no(&self) {} }",
        ),
        source(
            "b/deep.rs",
            "/// Text.\n#[derive(Debug)] #[expect(x)] pub struct Kept { pub a: u8, b: u16 } \
             impl Kept { /// Text.\n pub fn new(mut a: u8) -> Self { Kept { a, b: 0 } } fn no() {} } \
             impl Kept { pub fn into(mut self) {} } \
             impl Drop for Kept { fn drop(&mut self) {} } \
             #[cfg(test)] mod tests { pub struct No; }",
        ),
        source("open.rs", "pub struct Pair(pub u8, u16); pub enum E { A(u8), B { c: u8 } }"),
    ];
    let expected = "\
pub const MAX: u8 = 3;
#[derive(Debug)]
pub struct Renamed {
    pub a: u8,
    // private fields
}
impl Kept {
    pub fn into(self) {}
    pub fn new(a: u8) -> Self {}
}
impl Drop for Kept {}
pub use other::Thing;
pub trait Trait {
    type Out;
    fn f(&self) {}
    fn h(&self);
}
impl Trait for u8 {
    type Out = u8;
}
pub mod open {
    pub enum E {
        A(u8),
        B { c: u8 },
    }
    pub struct Pair(pub u8, _);
}
";
    let listing = listing(&super::modules::read(&files, "crates/a/src"));
    assert_eq!(listing, expected, "{}", super::diff(expected, &listing));
}
