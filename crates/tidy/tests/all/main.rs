//! Checks the source tree: dependencies between crates, length of files, use of `unsafe`, banned
//! words. Each rule is a function from files to violations. One test applies the rule to the tree,
//! another test checks that the rule reports a small invalid input.

mod banned_words;
mod book;
mod cycles;
mod dependencies;
mod exceptions;
mod figures;
mod file_calls;
mod file_length;
mod folders;
mod imports;
mod lexicon;
mod links;
mod merge_markers;
mod packages;
mod pages;
mod product;
mod promises;
mod public;
mod purity;
mod quiet;
mod sbom;
mod test_modules;
mod translations;
mod tree;
mod unsafe_code;
