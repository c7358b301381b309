//! Tests about the code itself: what may depend on what, how long a file may be, where `unsafe`
//! may stand, which words are used for what. Each rule is a function from files to complaints;
//! one test asks it about the tree, another shows it a small bad input that it must notice.

mod arrows;
mod forgotten;
mod links;
mod purity;
mod sizes;
mod tree;
mod unsafety;
mod words;
