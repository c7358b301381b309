//! A server that has no store yet.

use std::sync::Arc;
use std::sync::mpsc::channel;

use haul_s3_server::{Addresses, Config, Listening, Server, StandbyState};
use haul_testing::{Endpoint, Transport};
use tokio::sync::oneshot;

use crate::client::{Client, Reply, open_in_memory, small};

fn clients(addresses: Addresses) -> [Client; 2] {
    [addresses.listen, addresses.admin]
        .map(|address| Client(Endpoint { address, transport: Transport::Plain }))
}

/// Checks a response that is not cached and invites to try again.
fn assert_standby(reply: &Reply, status: u16, text: &str) {
    assert_eq!((reply.status, reply.text().as_str()), (status, text));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("retry-after"), Some("1"));
}

fn assert_answers_of_standby(addresses: Addresses) {
    let [s3, admin] = clients(addresses);
    let error = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>ServiceUnavailable</Code>\
                 <Message>This server is a standby: 3 &lt; 4 &amp; copying</Message></Error>";
    for reply in [s3.get("/bucket/key"), s3.put("/bucket", b""), s3.get("/metrics")] {
        assert_standby(&reply, 503, error);
        assert_eq!(reply.header("content-type"), Some("application/xml"));
    }
    assert_standby(&admin.get("/health"), 503, "standby: 3 < 4 & copying\n");
    let metrics = "# HELP haul_standby 1 while the server follows a copy.\n\
                   # TYPE haul_standby gauge\nhaul_standby 1\n";
    assert_standby(&admin.get("/metrics"), 200, metrics);
}

#[test]
fn standby_reports_its_state_until_a_store_is_served_at_its_addresses() {
    let any = "127.0.0.1:0".parse().unwrap();
    let config = Config { listen: any, admin: any, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _within = runtime.enter();
    let mut listening = Listening::bind(config).unwrap();
    let addresses = listening.addresses();
    let state: StandbyState = Arc::new(|| "3 < 4 & copying".to_owned());

    let (ready, is_ready) = channel();
    let (end, ended) = oneshot::channel::<()>();
    let client = std::thread::spawn(move || {
        is_ready.recv().unwrap();
        assert_answers_of_standby(addresses);
        drop(end);
    });
    let standing_by =
        listening.stand_by(state, || ready.send(()).unwrap(), async { drop(ended.await) });
    runtime.block_on(standing_by).unwrap();
    client.join().unwrap();

    let store = open_in_memory(small());
    let server = Server::new(listening, Arc::new(store)).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let client = std::thread::spawn(move || {
        let [s3, admin] = clients(addresses);
        assert_eq!(s3.put("/bucket", b"").status, 200);
        assert_eq!(s3.put("/bucket/key", b"hello").status, 200);
        assert!(admin.get("/metrics").text().contains("haul_objects 1"));
        drop(stop);
    });
    runtime.block_on(server.run(async { drop(stopped.await) })).unwrap();
    client.join().unwrap();
}
