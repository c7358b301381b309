//! Checks the source tree. Each rule is a function from files to violations: one test applies it to
//! the tree, another shows that it reports a small invalid input.

mod dependencies;
mod excess;
mod features;
mod figures;
mod items;
mod modules;
mod packages;
mod pages;
mod promises;
mod sbom;
mod translations;
mod tree;
mod words;
