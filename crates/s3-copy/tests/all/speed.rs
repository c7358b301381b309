//! Measures the rate of a copy of many small objects, on request.

use std::time::Instant;

use crate::server::{Running, copy, options};

#[test]
#[ignore = "measures: run it alone with --ignored --nocapture"]
fn ten_thousand_small_objects() {
    let (from, to) = (Running::new(), Running::new());
    from.s3.put("/b-1", b"");
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let s3 = from.s3;
            scope.spawn(move || {
                for number in 0..1250 {
                    let content = haul_testing::noise(thread * 10_000 + number, 4096);
                    s3.put(&format!("/b-1/{thread}/{number}"), &content);
                }
            });
        }
    });
    for pass in ["first", "second"] {
        let started = Instant::now();
        let summary = copy(&haul_s3_copy::Options { jobs: 32, ..options(&from, &to) });
        println!("{pass} pass: {} objects, {:?}", summary.objects, started.elapsed());
    }
}
