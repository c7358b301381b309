//! Simulates processes that own, watch, restore and take over a copy.

mod crash;
mod lease;
