//! Runs the targets on their seeds, and checks that each parser has a target.

mod readers;
mod seeds;
