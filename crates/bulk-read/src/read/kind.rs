//! What kind of device it is, as far as the order of reads goes.

/// How a device likes to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It serves many requests at once, wherever they lie.
    Solid,
    /// It has an arm to move: one request after the other, in the order they lie.
    Rotating,
}

/// How one device was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceRead {
    /// The kernel's name of the disk, such as `sda`; else of the file system.
    pub name: String,
    /// What it was taken for.
    pub kind: Kind,
    /// How many threads read from it.
    pub threads: usize,
}
