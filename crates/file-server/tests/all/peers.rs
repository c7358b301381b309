//! Limits of one client, for which the loopback addresses 127.0.0.1 and 127.0.0.2 are two clients.

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZero;
use std::time::Duration;

use haul_file_server::Rate;
use haul_testing::http::Peer;
use haul_testing::{ClientStream, Endpoint, Transport, over};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use crate::client::{Client, get};
use crate::helper::ServedDir;

over!(Plain Inherited Tls => (
    clients_with_half_heads_delay_no_other_client,
    response_in_progress_is_never_evicted,
    requests_above_the_rate_of_a_client_are_answered_with_429,
));

/// Connects from a loopback address such as 127.0.0.2.
fn connect_from(last: u8, to: Endpoint) -> Peer<ClientStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
    connect(&socket, &to.address).unwrap();
    Peer::over(to.handshake(socket.into()).unwrap())
}

/// Returns `true` if a new connection of this process is served, `false` if it is refused.
fn is_served(server: Endpoint) -> bool {
    // A connection over TLS is refused by the end of its handshake.
    let response = server.connect().and_then(|stream| {
        let mut client = Peer::over(stream);
        client.try_send("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        client.response()
    });
    response.is_ok_and(|response| response.status == 200)
}

fn clients_with_half_heads_delay_no_other_client(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "a");
    let running = place.serve(|config| {
        config.limits.connections = 200;
        config.threads = 2;
        // If the half heads did not give way, no time limit would make room for others.
        config.limits.head_time = Duration::from_hours(1);
    });
    let mut hostile: Vec<_> = (0..400)
        .map(|_| {
            // The connection may be refused at once, if none of the others waits yet.
            let mut stream = running.address.connect().ok();
            stream
                .iter_mut()
                .for_each(|stream| _ = stream.write_all(b"GET /a HTTP/1.1\r\nHost: loc").ok());
            stream
        })
        .collect();
    for _ in 0..20 {
        let mut client = connect_from(2, running.address);
        assert_eq!(client.exchange("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n").text(), "a");
        hostile.push(running.address.connect().ok());
    }
    running.wait_until("all but 100 hostile connections are closed", |stats| {
        stats.connections_open == 100
            && stats.connections_evicted + stats.connections_refused == 420 - 100
    });
    // Even the hostile address is served, because its half heads give way.
    running.wait_until("a half head is old enough to give way", |_| is_served(running.address));
}

fn response_in_progress_is_never_evicted(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("big", vec![1; 64 << 20]);
    place.write("a", "a");
    let running = place.serve(|config| config.limits.peer_connections = Some(2));
    let mut busy: Vec<_> = (0..2).map(|_| Client::new(running.address)).collect();
    for client in &mut busy {
        client.say("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(client.head().status, 200);
    }
    if transport == Transport::Tls {
        assert!(running.address.connect().is_err(), "closed without a handshake");
    } else {
        let mut refused = Client::new(running.address);
        let response = refused.answer("GET");
        assert_eq!((response.status, response.field("retry-after")), (503, Some("1")));
        assert_eq!(refused.rest(), (Vec::new(), true));
    }
    for client in &mut busy {
        client.read_exact(64 << 20);
    }
    running.wait_until("both wait for requests", |_| is_served(running.address));
    assert!(running.stats().connections_refused >= 1);
}

fn requests_above_the_rate_of_a_client_are_answered_with_429(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "a");
    let rate: Rate = "2/min".parse().unwrap();
    let rate = Rate { burst: NonZero::new(3).unwrap(), ..rate };
    let running = place.serve(|config| config.limits.peer_rate = Some(rate));
    let mut client = Client::new(running.address);
    for _ in 0..3 {
        assert_eq!(client.get("/a", "").status, 200);
    }
    let response = client.get("/a", "");
    let wait: u64 = response.field("retry-after").unwrap().parse().unwrap();
    assert_eq!(response.status, 429);
    assert!((1..=30).contains(&wait), "{wait}");
    assert_eq!(get(running.address, "/a", "").status, 429, "on another connection, too");
    assert_eq!(running.stats().requests_refused, 2);
    let mut other = connect_from(2, running.address);
    assert_eq!(other.exchange("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
}
