//! Slow clients. The tests of `http-engine` have all limits of time.

use std::time::Duration;

use haul_file_server::{Limits, ManualClock};
use haul_testing::{Transport, over};

use crate::client::{Client, get};
use crate::helper::{ServedDir, noise};

over!(Plain Inherited Tls => (
    idle_connection_is_closed,
    client_that_reads_no_response_is_disconnected,
    stalled_downloads_do_not_delay_other_requests,
    flood_of_incomplete_heads_delays_no_others_and_is_closed,
));

const SOON: Duration = Duration::from_millis(200);

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
    for (number, target) in (1..).zip(["/warm", "/cold"]) {
        let mut client = Client::new(running.address);
        client.say(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        running.wait_until("the connection is closed", |stats| {
            stats.too_slow == number && stats.connections_open == 0
        });
        assert!(client.rest().0.len() < 64 << 20);
    }
    running.wait_until("all buffers are released", |stats| stats.buffers_leased == 0);
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
    let clock = ManualClock::new();
    let running = place.serve(|config| config.clock = (&clock).into());
    let flood: Vec<_> = (0..500)
        .map(|number| {
            let mut client = Client::new(running.address);
            client.say(format!("GET /a HTTP/1.1\r\nHost: h\r\nX-{number}: "));
            client
        })
        .collect();
    assert_eq!(get(running.address, "/a", "").text(), "a");
    running.wait_until("all are connected", |stats| stats.connections == 501);
    clock.advance(Limits::default().head_time);
    for mut client in flood {
        assert_eq!(client.answer("GET").status, 408);
        assert_eq!(client.rest(), (Vec::new(), true));
    }
    running.wait_until("all connections are closed", |stats| stats.connections_open == 0);
    assert_eq!(running.stats().too_slow, 500);
    let mut after = Client::new(running.address);
    assert_eq!(after.get("/a", "").text(), "a");
}
