//! Reactors against the kernel.
