//! Tests with short measurements on a real file system.

mod storage;

use haul_testing::disk_dir;
