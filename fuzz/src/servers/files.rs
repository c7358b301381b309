//! A file server in this process, and the directory that it serves.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::sync::LazyLock;

use haul_file_server::{Address, Config, Server};
use tempfile::TempDir;

use super::ANY;

/// The content of files that the server must not send.
pub(crate) const SECRET: &[u8] = b"the content of a file that is not served";

/// The content of the file `/file`.
pub(crate) static CONTENT: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..1000_u32).map(|at| (at % 251).to_le_bytes()[0]).collect());

/// The running server.
#[derive(Debug)]
pub(crate) struct Running {
    /// Its address.
    pub(crate) address: SocketAddr,
    _dir: TempDir,
}

/// The server, which is started by its first use and never stopped.
pub(crate) static SERVER: LazyLock<Running> = LazyLock::new(Running::start);

impl Running {
    fn start() -> Self {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("dir/below")).unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        for (name, content) in [
            ("../secret", SECRET),
            (".secret", SECRET),
            (".git/secret", SECRET),
            ("file", &CONTENT),
            ("empty", b""),
            ("page.html", b"<p>page</p>"),
            ("page.html.gz", b"compressed"),
            ("dir/index.html", b"index"),
            ("dir/below/a b+%", b"odd"),
        ] {
            fs::write(root.join(name), content).unwrap();
        }
        symlink("../secret", root.join("link")).unwrap();
        symlink("..", root.join("up")).unwrap();
        let mut config = Config::new(root);
        config.listen = Address::Tcp(ANY);
        config.threads = 1;
        config.content.listings = true;
        let server = Server::bind(config).unwrap();
        let Address::Tcp(address) = server.addresses().listen else { unreachable!("it is TCP") };
        std::thread::spawn(move || server.run().unwrap());
        Self { address, _dir: dir }
    }
}
