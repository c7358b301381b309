//! Removes from items everything that is not part of the interface.

use syn::punctuated::Punctuated;
use syn::{
    Attribute, Block, Fields, FieldsNamed, FnArg, ImplItem, Item, ItemImpl, Pat, Signature,
    TraitItem, Type, parse_quote,
};

use super::modules::is_public;

/// The field that stands for all private fields of a struct, as the listing prints it.
pub(super) const PRIVATE: &str = "private_fields: (),";

/// The attributes that are part of the interface.
const ATTRIBUTES: &[&str] =
    &["cfg", "deprecated", "derive", "macro_export", "must_use", "non_exhaustive", "repr"];

fn attributes(attributes: &mut Vec<Attribute>) {
    attributes.retain(|attribute| ATTRIBUTES.iter().any(|name| attribute.path().is_ident(name)));
}

fn empty() -> Block {
    parse_quote!({})
}

fn fields(fields: &mut Fields, is_struct: bool) {
    match fields {
        Fields::Named(named) => named_fields(named, is_struct),
        Fields::Unnamed(unnamed) => {
            for field in &mut unnamed.unnamed {
                field.attrs.clear();
                if is_struct && !is_public(&field.vis) {
                    field.vis = syn::Visibility::Inherited;
                    field.ty = parse_quote!(_);
                }
            }
        }
        Fields::Unit => {}
    }
}

fn named_fields(named: &mut FieldsNamed, is_struct: bool) {
    let count = named.named.len();
    let all = std::mem::take(&mut named.named);
    let visible = all.into_iter().filter(|field| !is_struct || is_public(&field.vis));
    let mut kept: Punctuated<_, _> = visible.collect();
    kept.iter_mut().for_each(|field| field.attrs.clear());
    if kept.len() < count {
        let private: FieldsNamed = parse_quote!({ private_fields: () });
        kept.extend(private.named);
    }
    named.named = kept;
}

/// Returns the item with its signature only, under `name`.
pub(super) fn item(item: &Item, name: &str) -> Item {
    let mut item = item.clone();
    match &mut item {
        Item::Const(item) => attributes(&mut item.attrs),
        Item::Enum(item) => {
            attributes(&mut item.attrs);
            for variant in &mut item.variants {
                attributes(&mut variant.attrs);
                fields(&mut variant.fields, false);
            }
        }
        Item::Fn(item) => {
            attributes(&mut item.attrs);
            signature(&mut item.sig);
            *item.block = empty();
        }
        Item::Static(item) => attributes(&mut item.attrs),
        Item::Struct(item) => {
            attributes(&mut item.attrs);
            fields(&mut item.fields, true);
        }
        Item::Trait(item) => {
            attributes(&mut item.attrs);
            item.items.iter_mut().for_each(trait_item);
        }
        Item::Type(item) => attributes(&mut item.attrs),
        Item::Macro(item) => {
            attributes(&mut item.attrs);
            item.mac.tokens = Default::default();
        }
        _ => {}
    }
    rename(&mut item, name);
    item
}

/// Removes `mut` from the names of arguments, which concerns only the body.
fn signature(signature: &mut Signature) {
    for argument in &mut signature.inputs {
        match argument {
            FnArg::Receiver(receiver) if receiver.reference.is_none() => receiver.mutability = None,
            FnArg::Receiver(_) => {}
            FnArg::Typed(typed) => {
                if let Pat::Ident(name) = &mut *typed.pat {
                    name.mutability = None;
                }
            }
        }
    }
}

/// A method with a default implementation keeps an empty body, as its caller may omit it.
fn trait_item(item: &mut TraitItem) {
    match item {
        TraitItem::Fn(item) => {
            attributes(&mut item.attrs);
            signature(&mut item.sig);
            item.default = item.default.as_ref().map(|_| empty());
        }
        TraitItem::Const(item) => attributes(&mut item.attrs),
        TraitItem::Type(item) => attributes(&mut item.attrs),
        _ => {}
    }
}

fn rename(item: &mut Item, name: &str) {
    let ident = match item {
        Item::Const(item) => &mut item.ident,
        Item::Enum(item) => &mut item.ident,
        Item::Fn(item) => &mut item.sig.ident,
        Item::Static(item) => &mut item.ident,
        Item::Struct(item) => &mut item.ident,
        Item::Trait(item) => &mut item.ident,
        Item::Type(item) => &mut item.ident,
        _ => return,
    };
    if *ident != *name {
        *ident = syn::Ident::new(name, ident.span());
    }
}

/// Returns the public part of an implementation; `None` if there is none. An implementation of a
/// trait has only its constants and types: its methods are those of the trait.
pub(super) fn implementation(item: &ItemImpl) -> Option<ItemImpl> {
    let mut item = item.clone();
    attributes(&mut item.attrs);
    let is_inherent = item.trait_.is_none();
    item.items.retain_mut(|member| match member {
        ImplItem::Fn(method) => {
            attributes(&mut method.attrs);
            signature(&mut method.sig);
            method.block = empty();
            is_inherent && is_public(&method.vis)
        }
        ImplItem::Const(constant) => {
            attributes(&mut constant.attrs);
            !is_inherent || is_public(&constant.vis)
        }
        ImplItem::Type(_) => true,
        _ => false,
    });
    (!is_inherent || !item.items.is_empty()).then_some(item)
}

/// Returns the path of the type, or of the type to which it refers.
pub(super) fn type_path(of: &Type) -> Option<Vec<String>> {
    match of {
        Type::Path(path) if path.qself.is_none() => Some(segments(&path.path)),
        Type::Reference(reference) => type_path(&reference.elem),
        _ => None,
    }
}

pub(super) fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}
