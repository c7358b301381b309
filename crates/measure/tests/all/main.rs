//! Measurements, kept short, on a real file system.

mod storage;

use haul_testing::disk_dir;
