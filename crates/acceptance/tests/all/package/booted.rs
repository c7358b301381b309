//! Runs the three services under systemd, started by clients through their sockets.

use haul_testing::disk_dir;

use super::{SERVICES, build};
use crate::machine::Machine;

/// Files of the file server: in memory, in one read, and large.
const FILES: &str = "
mkdir --parents /srv/www
head --bytes 100 /dev/urandom >/srv/www/small
head --bytes 1M /dev/urandom >/srv/www/medium
head --bytes 20M /dev/urandom >/srv/www/big
sed -i 's|^#access-log = .*|access-log = \"/var/log/haul-files\"|' /etc/haul/files.toml
sed -i 's|^#access-log = .*|access-log = \"/var/log/haul\"|' /etc/haul/serve.toml
systemctl enable --now haul-serve.socket haul-files.socket haul-relay.socket
";

/// Stores each file, and reads it from the store, from the file server, and through the relay.
const REQUESTS: &str = "
for name in small medium big; do
    curl --fail --silent --max-time 20 --upload-file /srv/www/$name http://127.0.0.1:9000/bucket/$name
    for url in 9000/bucket 8080 8000; do
        curl --fail --silent --max-time 20 http://127.0.0.1:$url/$name | cmp - /srv/www/$name
    done
done
";

/// The state of a service, as systemd knows it.
fn state(machine: &Machine, service: &str) -> String {
    let show = ["systemctl", "show", "--property", "ActiveState,Result,NRestarts", service];
    machine.run(&show).lines().collect::<Vec<_>>().join(" ")
}

#[test]
fn sockets_start_the_services_under_systemd() {
    let Some(machine) = Machine::boot(&[]) else { return };
    let packages = disk_dir();
    machine.install(&build(packages.path(), "1"));
    machine.shell(FILES);
    for service in SERVICES {
        assert_eq!(state(&machine, service), "Result=success NRestarts=0 ActiveState=inactive");
    }
    machine.shell("curl --fail --silent --max-time 20 --request PUT http://127.0.0.1:9000/bucket");
    machine.shell(REQUESTS);
    for service in SERVICES {
        machine.run(&["systemctl", "reload", service]);
    }
    machine.shell(REQUESTS);
    println!("{}", machine.shell("ls -lR /var/log/haul /var/log/haul-files/"));
    for service in SERVICES {
        assert_eq!(state(&machine, service), "Result=success NRestarts=0 ActiveState=active");
        let user = machine.run(&["systemctl", "show", "--property", "UID", "--value", service]);
        assert_ne!(user.trim(), "0");
    }
    machine.run(&[&["systemctl", "stop"][..], &SERVICES].concat());
    for service in SERVICES {
        assert_eq!(state(&machine, service), "Result=success NRestarts=0 ActiveState=inactive");
        // The hardening refuses nothing that the service needs.
        let log = machine.run(&["journalctl", "--unit", service, "--no-pager"]);
        for refused in ["denied", "not permitted", "Read-only", "error", "SIGSYS"] {
            assert!(!log.contains(refused), "{log}");
        }
    }
    // The sockets still listen: the next client starts the services again.
    machine.shell(REQUESTS);
}
