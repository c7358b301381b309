//! Slow clients.

use std::io::Read;
use std::time::Duration;

use haul_testing::{Transport, over};

use crate::client::{Client, get};
use crate::helper::{ServedDir, noise};

over!(Plain Inherited Tls => (
    incomplete_head_has_a_time_limit,
    single_bytes_do_not_extend_the_time_limit_of_a_head,
    idle_connection_is_closed,
    client_that_reads_no_response_is_disconnected,
    steady_reader_is_served_however_long_it_takes,
    slow_reader_behind_full_kernel_buffers_is_not_disconnected,
    stalled_downloads_do_not_delay_other_requests,
    flood_of_incomplete_heads_delays_no_others_and_is_closed,
));

const SOON: Duration = Duration::from_millis(200);

fn incomplete_head_has_a_time_limit(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "a");
    let running = place.serve(|config| config.limits.head_time = SOON);
    let mut silent = Client::new(running.address);
    let mut begun = Client::new(running.address);
    begun.say("GET /a HTTP/1.1\r\nHo");
    let mut second = Client::new(running.address);
    assert_eq!(second.get("/a", "").text(), "a");
    second.say("G");
    assert_eq!(silent.rest(), (Vec::new(), true));
    for client in [&mut begun, &mut second] {
        let response = client.answer("GET");
        assert_eq!((response.status, response.field("connection")), (408, Some("close")));
        assert_eq!(client.rest(), (Vec::new(), true));
    }
    assert_eq!(running.stats().too_slow, 2, "a silent connection is only idle");
}

fn single_bytes_do_not_extend_the_time_limit_of_a_head(transport: Transport) {
    let place = ServedDir::over(transport);
    let running = place.serve(|config| config.limits.head_time = SOON);
    let mut client = Client::new(running.address);
    // It ends when the server has closed: a write to a closed connection fails.
    while client.try_say("X") {
        std::thread::yield_now();
    }
    running.wait_until("the connection is closed", |stats| stats.connections_open == 0);
}

fn idle_connection_is_closed(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "a");
    let running = place.serve(|config| config.limits.idle_time = SOON);
    let mut client = Client::new(running.address);
    assert_eq!(client.get("/a", "").text(), "a");
    assert_eq!(client.rest(), (Vec::new(), true));
    assert_eq!(running.stats().too_slow, 0);
}

fn client_that_reads_no_response_is_disconnected(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("warm", noise(1, 64 << 20));
    place.write_cold("cold", &noise(2, 64 << 20));
    let running = place.serve(|config| config.limits.send_time = SOON);
    for target in ["/warm", "/cold"] {
        let mut client = Client::new(running.address);
        client.say(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!(client.head().status, 200);
        running.wait_until("the connection is closed", |stats| stats.connections_open == 0);
        assert!(client.rest().0.len() < 64 << 20);
    }
    assert_eq!(running.stats().too_slow, 2);
    running.wait_until("all buffers are released", |stats| stats.buffers_leased == 0);
}

fn steady_reader_is_served_however_long_it_takes(transport: Transport) {
    let place = ServedDir::over(transport);
    let bytes = noise(1, 48 << 20);
    place.write_cold("cold", &bytes);
    // Each period is long enough for a client that is not scheduled on a busy machine for a while.
    let period = Duration::from_secs(3);
    let running = place.serve(|config| {
        config.limits.send_time = period;
        config.limits.send_rate_min = 1;
    });
    let mut client = Client::new(running.address);
    client.say("GET /cold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.head().status, 200);
    let since = std::time::Instant::now();
    let mut taken = Vec::new();
    while taken.len() < bytes.len() {
        // Slower than possible, and faster than the minimum: the response takes several periods.
        let due = period.mul_f64(3.0 * taken.len() as f64 / bytes.len() as f64);
        while since.elapsed() < due {
            std::thread::yield_now();
        }
        taken.extend(client.read_exact((1 << 20).min(bytes.len() - taken.len())));
    }
    assert!(taken == bytes);
    assert_eq!(running.stats().too_slow, 0);
}

fn slow_reader_behind_full_kernel_buffers_is_not_disconnected(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("big", noise(1, 64 << 20));
    let period = Duration::from_secs(3);
    let running = place.serve(|config| {
        config.limits.send_time = period;
        config.limits.send_rate_min = 1 << 10;
    });
    let mut client = Client::new(running.address);
    client.say("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.head().status, 200);
    let since = std::time::Instant::now();
    // A hundred times the minimum rate, yet so slow that the socket has no room for many seconds:
    // megabytes are in the buffers of the kernel.
    while since.elapsed() < period * 4 {
        client.read_exact(32 << 10);
        let next = since.elapsed() + Duration::from_millis(250);
        while since.elapsed() < next {
            std::thread::yield_now();
        }
    }
    assert_eq!(running.stats().too_slow, 0);
    assert_eq!(running.stats().connections_open, 1);
}

fn stalled_downloads_do_not_delay_other_requests(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write_cold("cold", &noise(1, 16 << 20));
    place.write("warm", noise(2, 16 << 20));
    place.write("small", "12345");
    let running = place.serve(|config| config.tiers.buffers_max = 4);
    let mut stalled = Vec::new();
    for target in ["/cold", "/warm"].repeat(10) {
        let mut client = Client::new(running.address);
        client.say(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        stalled.push(client);
    }
    for client in &mut stalled {
        assert_eq!(client.head().status, 200);
    }
    for _ in 0..100 {
        assert_eq!(get(running.address, "/small", "").text(), "12345");
    }
    assert_eq!(get(running.address, "/warm", "").body.len(), 16 << 20);
    let expected = [noise(1, 16 << 20), noise(2, 16 << 20)];
    for (index, mut client) in stalled.into_iter().enumerate() {
        assert!(client.read_exact(16 << 20) == expected[index % 2], "{index}");
    }
    running.wait_until("all buffers are released", |stats| stats.buffers_leased == 0);
}

fn flood_of_incomplete_heads_delays_no_others_and_is_closed(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "a");
    let running = place.serve(|config| config.limits.head_time = Duration::from_secs(2));
    let flood: Vec<_> = (0..500)
        .map(|number| {
            let mut client = Client::new(running.address);
            client.say(format!("GET /a HTTP/1.1\r\nHost: h\r\nX-{number}: "));
            client
        })
        .collect();
    assert_eq!(get(running.address, "/a", "").text(), "a");
    for mut client in flood {
        assert_eq!(client.answer("GET").status, 408);
        assert_eq!(client.rest(), (Vec::new(), true));
    }
    running.wait_until("all connections are closed", |stats| stats.connections_open == 0);
    assert_eq!(running.stats().too_slow, 500);
    let mut byte = [0];
    let mut after = Client::new(running.address);
    assert_eq!(after.get("/a", "").text(), "a");
    after.stream().set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    assert!(after.stream().read(&mut byte).is_err(), "no more bytes were sent");
}
