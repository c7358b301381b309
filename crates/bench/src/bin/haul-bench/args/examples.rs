//! Holds the examples that end the long help of each command.

pub(super) const HAUL_BENCH: &str = "\
Examples:
  haul bench all --dir . --quick
  haul bench write-modes --dir .
  haul bench pacing --dir /var/tmp
  haul bench random-read --dir /var/tmp
  haul bench random-read --dir /var/tmp --readers 1,32 --check-with fio
  haul bench sequential-read --dir /var/tmp
  sudo haul bench read-order
  sudo haul bench random-write";

pub(super) const PACING: &str = "\
Examples:
  haul bench pacing --dir /var/tmp
  haul bench pacing --dir /srv --bulk 8GiB --windows 4MiB,1MiB,32MiB --json pacing.json";

pub(super) const RANDOM_READ: &str = "\
Examples:
  haul bench random-read --dir /var/tmp
  haul bench random-read --dir /var/tmp --readers 1,32 --check-with fio";

pub(super) const SEQUENTIAL_READ: &str = "\
Examples:
  haul bench sequential-read --dir /var/tmp
  haul bench sequential-read --dir /srv --sizes 4KiB,128KiB,4MiB --advice normal";

pub(super) const READ_ORDER: &str = "\
Examples:
  sudo haul bench read-order
  sudo haul bench read-order --drive travelstar-7k320 --fs xfs --threads 1";

pub(super) const POWER_CUTS: &str = "\
Examples:
  sudo haul bench power-cuts
  sudo haul bench power-cuts --file-systems ext4,ext4-nojournal --cuts 500 --json cuts.json";

pub(super) const DIRECT_OR_CACHED: &str = "\
Examples:
  sudo haul bench direct-or-cached --dir /var/tmp
  sudo haul bench direct-or-cached --dir /srv --memory 8GiB --data-percent 50,100,200,600 --seconds 10s";

pub(super) const APP_CACHE: &str = "\
Examples:
  sudo haul bench app-cache --dir /var/tmp
  sudo haul bench app-cache --dir /srv --memory 4GiB --hot-percent 20 --seconds 5s --json cache.json";

pub(super) const RANDOM_WRITE: &str = "\
Examples:
  sudo haul bench random-write
  sudo haul bench random-write --records 200000 --file-size 10GiB --batches 1000000 --rounds 1";

pub(super) const SMALL_FILES: &str = "\
Examples:
  haul bench small-files --dir /var/tmp
  haul bench small-files --dir /srv --writers 64 --sizes 16KiB,64KiB --json small-files.json";

pub(super) const DUPLICATES: &str = "\
Examples:
  haul bench duplicates --dir /var/tmp --files 20000 --big 1GiB
  sudo haul bench duplicates --dir /var/tmp --corpus small --rounds 11 --json small.json
  sudo haul bench duplicates --dir /var/tmp --corpus spinning";

pub(super) const FILES: &str = "\
Examples:
  sudo haul bench files --dir /var/tmp --congestion cubic --json files.json
  haul bench files --dir /var/tmp --only hot --sizes 4KiB --rounds 11
  sudo haul bench files --dir /var/tmp --only latency --memory 512MiB --big-files 32
  haul bench files --dir /var/tmp --only hot,close,tls --sizes 4KiB,1MiB --connections 1,64,1000";

pub(super) const SERVE: &str = "\
Examples:
  sudo haul bench serve --dir /var/tmp --congestion cubic --json serve.json
  haul bench serve --dir /var/tmp --only get --sizes 4KiB,1MiB --rounds 11
  haul bench serve --dir /srv --only put --connections 64 --seconds 2s";

pub(super) const S3: &str = "\
Examples:
  haul bench s3 --dir /var/tmp --json s3.json
  haul bench s3 --dir /var/tmp --only put,get --sizes 4KiB,64KiB --rounds 11
  haul bench s3 --dir /srv --only list --list-keys 1000000 --rivals seaweedfs";

pub(super) const RELAY: &str = "\
Examples:
  sudo haul bench relay --dir /tmp --congestion cubic --json relay.json
  haul bench relay --dir /tmp --only messages --sizes 64,4KiB,64KiB --rivals haproxy --rounds 11
  haul bench relay --dir /tmp --only bulk --flows 1,4,16,64 --compare ./haul-bench-compare";

pub(super) const LOG: &str = "\
Examples:
  haul bench log --dir /var/tmp
  haul bench log --dir /var/tmp --writers 1,4,16,64 --sizes 100,1KiB,4KiB,64KiB --seconds 500ms";

pub(super) const WRITE_MODES: &str = "\
Examples:
  haul bench write-modes --dir . --modes fdatasync --sizes 4KiB
  haul bench write-modes --dir /srv --modes fdatasync --check-with fio";

pub(super) const ALL: &str = "\
Examples:
  haul bench all --dir . --quick
  sudo haul bench all --dir /srv --markdown all.md --json all.json";

pub(super) const COMPARE: &str = "\
Examples:
  haul bench compare before.json after.json
  haul bench compare before.json after.json --json | jq .moved";

pub(super) const COMPLETIONS: &str = "\
Examples:
  haul bench completions bash > /etc/bash_completion.d/haul-bench";

pub(super) const MAN: &str = "\
Examples:
  haul bench man
  haul bench man man/";

pub(super) const HAYSTACK: &str = "\
Examples:
  sudo haul bench haystack
  sudo haul bench haystack --dirs 400 --files 200 --size 16KiB --json haystack.json";

pub(super) const READAHEAD: &str = "\
Examples:
  sudo haul bench readahead --dir /var/tmp
  sudo haul bench readahead --dir /var/tmp --read-ahead-kb 128,8192 --sizes 4KiB,1MiB";

pub(super) const SPLICE: &str = "\
Examples:
  haul bench splice
  haul bench splice --sizes 4KiB,8MiB --seconds 1s --json splice.json";
