//! An HTTP server that records the messages that it receives.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::http::{Message, Peer};

/// A webhook that runs until the process ends. It answers each message with a status that the test
/// sets, and records what it answers with 200.
#[derive(Debug, Clone)]
pub struct WebhookReceiver {
    address: SocketAddr,
    status: Arc<AtomicU16>,
    bytes_max: Arc<AtomicUsize>,
    delay: Arc<Mutex<Duration>>,
    messages: Arc<Mutex<Vec<Message>>>,
}

impl WebhookReceiver {
    /// Starts the server on a free port. It accepts all messages.
    ///
    /// # Panics
    /// Panics if no port is free.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let receiver = Self {
            address,
            status: Arc::new(AtomicU16::new(200)),
            bytes_max: Arc::new(AtomicUsize::new(usize::MAX)),
            delay: Arc::default(),
            messages: Arc::default(),
        };
        let accepting = receiver.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let receiver = accepting.clone();
                thread::spawn(move || receiver.serve(stream));
            }
        });
        receiver
    }

    /// Returns the URL of the webhook.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Sets the status of all further responses.
    pub fn answer_with(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// Sets the length in bytes above which messages are refused as too large.
    pub fn accept_up_to(&self, bytes: usize) {
        self.bytes_max.store(bytes, Ordering::SeqCst);
    }

    /// Sets the time after which all further messages are answered.
    ///
    /// # Panics
    /// Panics if a thread of the server has panicked.
    pub fn answer_after(&self, delay: Duration) {
        *self.delay.lock().unwrap() = delay;
    }

    /// Returns the accepted messages, and forgets them.
    ///
    /// # Panics
    /// Panics if a thread of the server has panicked.
    #[must_use]
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock().unwrap())
    }

    fn serve(&self, stream: TcpStream) {
        let mut peer = Peer::new(stream);
        while let Ok(Some(message)) = peer.request() {
            let delay = *self.delay.lock().unwrap();
            thread::sleep(delay);
            let status = match message.body.len() > self.bytes_max.load(Ordering::SeqCst) {
                true => 413,
                false => self.status.load(Ordering::SeqCst),
            };
            if status == 200 {
                // Recorded first: the sender must not send again what it was told is accepted.
                self.messages.lock().unwrap().push(message);
            }
            let response = format!("HTTP/1.1 {status} Status\r\ncontent-length: 4\r\n\r\ndone");
            if peer.try_send(response).is_err() {
                return;
            }
        }
    }
}
