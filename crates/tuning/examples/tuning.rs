//! States when the kernel of this machine begins to write dirty pages, and when it blocks writers.
#![expect(clippy::print_stdout, reason = "an example prints")]

use haul_disk::KernelFiles;
use haul_tuning::{Case, advise, outlook};

fn main() {
    let kernel = KernelFiles::default();
    let machine = kernel.machine();
    println!("{}", outlook::memory(&machine));
    // With file systems in `targets`, the sentences also state how long an fsync may wait on each.
    let case = Case { machine, targets: Vec::new(), oddities: kernel.anomalies() };
    for sentence in outlook::writers(&case) {
        println!("{sentence}");
    }
    for finding in advise(&case) {
        println!("{}: {}", finding.about, finding.text);
    }
}
