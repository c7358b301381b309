//! What stands at the end of the long help of each command.

pub(super) const HAUL: &str = "\
Examples:
  haul serve                                serve ./haul-data on 127.0.0.1:9000
  haul store import photos ~/Pictures       store a directory tree
  haul store ls --long photos               list it
  haul store export photos ./copy           write it back
  haul bench write-modes --dir .            which way of writing is fastest on this disk
  service 2>&1 | haul log /var/log/service  keep what a service says

Exit codes:
  0  everything went well
  1  some of it failed, or damage was found
  2  the command line is wrong
  3  it could not start: the store is in use or no store, or an address is taken
  130, 143  ended by Ctrl-C or SIGTERM before everything was done";

pub(super) const SERVE: &str = "\
Examples:
  haul serve
  haul serve --data /srv/files --listen 127.0.0.1:8000 --admin 127.0.0.1:8001
  HAUL_ACCESS_KEY=me HAUL_SECRET_KEY=secret haul serve --listen 0.0.0.0:9000
  haul serve --credentials /etc/haul/keys --listen '[::]:9000'

  curl -X PUT http://127.0.0.1:9000/photos
  curl -T cat.jpg http://127.0.0.1:9000/photos/cat.jpg";

pub(super) const STORE: &str = "\
Examples:
  haul store import photos ~/Pictures
  haul store ls photos
  haul store get photos/cat.jpg cat.jpg
  haul store verify --data /srv/files";

pub(super) const BENCH: &str = "\
Examples:
  haul bench write-modes --dir .
  haul bench random-read --dir /var/tmp
  haul bench sequential-read --dir /var/tmp
  sudo haul bench read-order";

pub(super) const BENCH_RANDOM_READ: &str = "\
Examples:
  haul bench random-read --dir /var/tmp
  haul bench random-read --dir /srv --file-size 16GiB --readers 1,32 --seconds 2s --json read.json";

pub(super) const BENCH_SEQUENTIAL_READ: &str = "\
Examples:
  haul bench sequential-read --dir /var/tmp
  haul bench sequential-read --dir /srv --sizes 4KiB,128KiB,4MiB --advice normal
  sudo haul bench sequential-read --dir /srv --read-ahead-kb 0,128,1024,8192";

pub(super) const BENCH_READ_ORDER: &str = "\
Examples:
  sudo haul bench read-order
  sudo haul bench read-order --drive travelstar-7k320 --fs xfs --threads 1 --time-scale 0
  sudo haul bench read-order --files 20000 --dirs 400 --scheduler mq-deadline --json order.json";

pub(super) const BENCH_LOG: &str = "\
Examples:
  haul bench log --dir /var/tmp
  haul bench log --dir /var/tmp --writers 1,4,16,64 --sizes 100,1KiB,4KiB,64KiB --seconds 500ms
  haul bench log --dir /var/tmp --rivals ./haul-bench-compare --all-forms --json log.json";

pub(super) const BENCH_WRITE_MODES: &str = "\
Examples:
  haul bench write-modes --dir . --modes fdatasync --sizes 4KiB
  haul bench write-modes --dir /srv --json modes.json --markdown modes.md
  sudo haul bench write-modes --dir /srv --virtual-disk ext4,ext4-nojournal,xfs,btrfs";

pub(super) const LOG: &str = "\
Examples:
  service 2>&1 | haul log /var/log/service
  service 2>&1 | haul log logs --max-size 100MiB --keep 20 --timestamps
  service 2>&1 | haul log logs --rotate-every 1d --max-size none --keep-time 30d
  service 2>&1 | haul log logs --keep all --keep-bytes 10GiB --sync 1s --tee

  tail -F logs/current
  cat logs/*.log logs/current               everything, in order

Exit codes:
  0  every line was written
  1  lines were lost, or a sync failed
  2  the command line is wrong
  3  it could not start: the directory is in use or cannot be used
  130, 143  ended by a second signal";

pub(super) const COMPLETIONS: &str = "\
Examples:
  haul completions bash > ~/.local/share/bash-completion/completions/haul
  haul completions fish > ~/.config/fish/completions/haul.fish";

pub(super) const MAN: &str = "\
Examples:
  haul man | man -l -
  haul man /usr/local/share/man/man1";

pub(super) const IMPORT: &str = "\
Examples:
  haul store import photos ~/Pictures
  haul store import backup /etc --prefix 2026-11-21/etc/
  haul store import photos ~/Pictures --skip-existing     only what is new or changed";

pub(super) const EXPORT: &str = "\
Examples:
  haul store export photos ./copy
  haul store export backup/2026-11-21/etc/ ./etc          only below this, without the prefix";

pub(super) const PUT: &str = "\
Examples:
  haul store put photos/cat.jpg cat.jpg
  pg_dump shop | haul store put backup/shop.sql";

pub(super) const GET: &str = "\
Examples:
  haul store get photos/cat.jpg cat.jpg
  haul store get backup/shop.sql | psql shop
  haul store get photos/cat.jpg --range 0-15 | xxd";

pub(super) const LS: &str = "\
Examples:
  haul store ls                                           the buckets
  haul store ls -l photos/2026/
  haul store ls -r --json photos | jq -r 'select(.bytes > 1e6).key'";

pub(super) const STAT: &str = "\
Examples:
  haul store stat photos
  haul store stat --json photos/cat.jpg | jq -r .etag";

pub(super) const RM: &str = "\
Examples:
  haul store rm photos/cat.jpg photos/dog.jpg
  haul store rm --recursive photos/2019/                  asks first
  haul store rm --recursive --yes photos                  empties the bucket";

pub(super) const MB: &str = "\
Examples:
  haul store mb photos";

pub(super) const RB: &str = "\
Examples:
  haul store rb photos";

pub(super) const VERIFY: &str = "\
Examples:
  haul store verify
  haul store verify --json | jq -r 'select(.kind == \"damage\").key'";

pub(super) const COMPACT: &str = "\
Examples:
  haul store rm --recursive photos/2019/ && haul store compact";
