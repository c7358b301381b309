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
  haul bench pacing --dir /srv --bulk 8GiB --windows 4MiB,1MiB,32MiB --json pacing.json
  sudo haul bench pacing --dir /srv --virtual-disk ext4 --dirty-limit 512MiB";

pub(super) const RANDOM_READ: &str = "\
Examples:
  haul bench random-read --dir /var/tmp
  haul bench random-read --dir /var/tmp --readers 1,32 --check-with fio
  haul bench random-read --dir /srv --file-size 16GiB --readers 1,32 --seconds 2s --json read.json";

pub(super) const SEQUENTIAL_READ: &str = "\
Examples:
  haul bench sequential-read --dir /var/tmp
  haul bench sequential-read --dir /srv --sizes 4KiB,128KiB,4MiB --advice normal
  sudo haul bench sequential-read --dir /srv --read-ahead-kb 0,128,1024,8192";

pub(super) const READ_ORDER: &str = "\
Examples:
  sudo haul bench read-order
  sudo haul bench read-order --drive travelstar-7k320 --fs xfs --threads 1 --time-scale 0
  sudo haul bench read-order --files 20000 --dirs 400 --scheduler mq-deadline --json order.json";

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
  sudo haul bench random-write --records 200000 --file-size 10GiB --batches 1000000 --rounds 1
  haul bench random-write --drive none --dir /var/tmp --writers 1,16 --json write.json";

pub(super) const SMALL_FILES: &str = "\
Examples:
  haul bench small-files --dir /var/tmp
  haul bench small-files --dir /srv --writers 64 --sizes 16KiB,64KiB --json small-files.json
  haul bench small-files --dir /srv --rivals ./haul-bench-compare --writers 1,16,64
  sudo haul bench small-files --dir /var/tmp --virtual-disk ext4,xfs --rounds 5";

pub(super) const SMALL_FILES_GET: &str = "\
Examples:
  haul bench small-files-get --dir /var/tmp
  haul bench small-files-get --dir /srv --sizes 4KiB --data-size 16GiB --threads 1 --json get.json";

pub(super) const SMALL_FILES_SCALE: &str = "\
Examples:
  haul bench small-files-scale --dir /var/tmp
  haul bench small-files-scale --dir /srv --objects 100000000 --steps 10
  haul bench small-files-scale --dir /srv --batch 1 --loaders 256";

pub(super) const SMALL_FILES_CHURN: &str = "\
Examples:
  sudo haul bench small-files-churn --dir /var/tmp
  sudo haul bench small-files-churn --dir /dev/shm --live 75 --times 10 --seconds 1h
  sudo haul bench small-files-churn --dir /srv --disk-size 12GiB --volume 128MiB --json churn.json";

pub(super) const DUPLICATES: &str = "\
Examples:
  haul bench duplicates --dir /var/tmp --files 20000 --big 1GiB
  sudo haul bench duplicates --dir /var/tmp --corpus small --rounds 11 --json small.json
  sudo haul bench duplicates --dir /var/tmp --corpus reflinks,spinning,paths";

pub(super) const FILES: &str = "\
Examples:
  sudo haul bench files --dir /var/tmp --congestion cubic --json files.json
  haul bench files --dir /var/tmp --only hot --sizes 4KiB --rounds 11
  sudo haul bench files --dir /var/tmp --only latency --memory 512MiB --big-files 32
  haul bench files --dir /var/tmp --only matrix,tls --files 8 --rounds 5 --seconds 200ms";

pub(super) const SERVE: &str = "\
Examples:
  sudo haul bench serve --dir /var/tmp --congestion cubic --json serve.json
  haul bench serve --dir /var/tmp --only get --sizes 4KiB,1MiB --rounds 11
  haul bench serve --dir /srv --only put --connections 64";

pub(super) const S3: &str = "\
Examples:
  haul bench s3 --dir /var/tmp --json s3.json
  haul bench s3 --dir /var/tmp --only put,get --sizes 4KiB,64KiB --rounds 11
  haul bench s3 --dir /var/tmp --only put,get --signature presigned --json presigned.json
  haul bench s3 --dir /srv --only list --list-keys 1000000 --rivals seaweedfs";

pub(super) const RELAY: &str = "\
Examples:
  sudo haul bench relay --congestion cubic --compare ./haul-bench-compare --json relay.json
  haul bench relay --only messages --sizes 64,4KiB,64KiB --rivals haproxy --rounds 11
  haul bench relay --only bulk --flows 1,4,16,64 --seconds 1s";

pub(super) const LOG: &str = "\
Examples:
  haul bench log --dir /var/tmp
  haul bench log --dir /var/tmp --writers 1,4,16,64 --sizes 100,1KiB,4KiB,64KiB --seconds 500ms
  haul bench log --dir /var/tmp --rivals ./haul-bench-compare --all-forms --json log.json";

pub(super) const WRITE_MODES: &str = "\
Examples:
  haul bench write-modes --dir . --modes fdatasync --sizes 4KiB
  haul bench write-modes --dir /srv --modes fdatasync --check-with fio
  haul bench write-modes --dir /srv --json modes.json --markdown modes.md
  sudo haul bench write-modes --dir /srv --virtual-disk ext4,ext4-nojournal,xfs,btrfs";

pub(super) const ALL: &str = "\
Examples:
  haul bench all --dir . --quick
  sudo haul bench all --dir /srv --report report.html --json all.json
  haul bench all --dir /srv --only disk,write-modes --force";

pub(super) const COMPARE: &str = "\
Examples:
  haul bench compare before.json after.json
  haul bench compare before.json after.json --json | jq .moved";

pub(super) const SEED: &str = "\
Examples:
  haul bench seed fill --dir /var/tmp
  sudo haul bench seed trace --dir /var/tmp --virtual-disk ext4
  sudo haul bench seed readahead --dir /var/tmp";

pub(super) const SEED_FILL: &str = "\
Examples:
  haul bench seed fill --dir /var/tmp
  haul bench seed fill --dir /srv --whole --rounds 1 --json fill.json
  sudo haul bench seed fill --dir /var/tmp --bytes 64MiB --virtual-disk ext4,ext4-nojournal";

pub(super) const SEED_TRACE: &str = "\
Examples:
  sudo haul bench seed trace --dir /var/tmp --virtual-disk ext4
  sudo haul bench seed trace --dir /srv --record 512 --sync fdatasync --trace lines.txt";

pub(super) const SEED_READAHEAD: &str = "\
Examples:
  sudo haul bench seed readahead --dir /var/tmp
  sudo haul bench seed readahead --dir /var/tmp --read-ahead-kb 128,8192 --sizes 4KiB,1MiB";

pub(super) const SEED_PWRITE: &str = "\
Examples:
  haul bench seed pwrite --dir /var/tmp
  haul bench seed pwrite --dir /srv --threads 1,32 --seconds 1s --json pwrite.json";

pub(super) const SEED_STDIO: &str = "\
Examples:
  haul bench seed stdio --dir /var/tmp
  haul bench seed stdio --dir /srv --sizes 16,512 --file-size 64MiB --json stdio.json";

pub(super) const SEED_PREFAULT: &str = "\
Examples:
  haul bench seed prefault --dir /var/tmp
  haul bench seed prefault --dir /srv --size 256MiB --rounds 21 --json prefault.json";

pub(super) const SEED_SORTED: &str = "\
Examples:
  sudo haul bench seed sorted
  sudo haul bench seed sorted --records 200000 --bytes 10GiB --index-size 12MiB
  sudo haul bench seed sorted --whole --dir /srv --json sorted.json";

pub(super) const SEED_ORDER: &str = "\
Examples:
  sudo haul bench seed order
  sudo haul bench seed order --whole --json order.json";

pub(super) const SEED_FIEMAP: &str = "\
Examples:
  haul bench seed fiemap --dir /var/tmp
  haul bench seed fiemap --dir /srv --files 1000000 --json fiemap.json";

pub(super) const SEED_THREADS: &str = "\
Examples:
  haul bench seed threads --dir /var/tmp
  haul bench seed threads --dir /srv --json threads.json";

pub(super) const SEED_CROSSOVER: &str = "\
Examples:
  sudo haul bench seed crossover --dir /var/tmp
  sudo haul bench seed crossover --dir /srv --json crossover.json";

pub(super) const SEED_STALL: &str = "\
Examples:
  sudo haul bench seed stall --dir /var/tmp
  sudo haul bench seed stall --dir /srv --dirty-limit 64MiB --json stall.json";

pub(super) const SEED_SPLICE: &str = "\
Examples:
  haul bench seed splice
  haul bench seed splice --sizes 4KiB,8MiB --seconds 1s --json splice.json";

pub(super) const SEED_JOURNAL: &str = "\
Examples:
  sudo haul bench seed journal --dir /var/tmp
  sudo haul bench seed journal --dir /srv --records 256 --rounds 31 --json journal.json";

pub(super) const SEED_GAIN: &str = "\
Examples:
  haul bench seed gain --dir /var/tmp
  haul bench seed gain --dir /srv --depth 256 --seconds 1s --json gain.json";

pub(super) const SEED_MMAP: &str = "\
Examples:
  sudo haul bench seed mmap --dir /var/tmp
  haul bench seed mmap --drive none --dir /srv --pages 20000 --json mmap.json";

pub(super) const SEED_HAYSTACK: &str = "\
Examples:
  sudo haul bench seed haystack
  sudo haul bench seed haystack --dirs 400 --files 200 --size 16KiB --json haystack.json";

pub(super) const SEED_DIRECT: &str = "\
Examples:
  haul bench seed direct --dir /var/tmp
  haul bench seed direct --dir /srv --seconds 2s --json direct.json";

pub(super) const SEED_INDEX: &str = "\
Examples:
  sudo haul bench seed index
  sudo haul bench seed index --records 20000 --batch 20000 --rounds 1 --json index.json";

pub(super) const SEED_WRITEBACK: &str = "\
Examples:
  sudo haul bench seed writeback --dir /var/tmp
  sudo haul bench seed writeback --dir /srv --memory 256MiB --bytes 1GiB --json writeback.json";

pub(super) const COMPLETIONS: &str = "\
Examples:
  haul bench completions bash > /etc/bash_completion.d/haul-bench";

pub(super) const MAN: &str = "\
Examples:
  haul bench man
  haul bench man man/";
