//! What stands at the end of the long help of each command.

pub(super) const HAUL: &str = "\
Examples:
  haul serve                                serve ./haul-data on 127.0.0.1:9000
  haul store import photos ~/Pictures       store a directory tree
  haul store ls --long photos               list it
  haul store export photos ./copy           write it back
  haul bench write-modes --dir .            which way of writing is fastest on this disk
  service 2>&1 | haul log /var/log/service  keep what a service says
  haul cache status /srv/files              what of these files is in memory
  haul probe --measure /srv                 what the disk below is, and what it can do
  haul tune --measure                       when writers wait here, and what to do about it
  haul dups ~/Pictures                      find files of equal content
  records | haul patch disk.img             write records into a big file, sorted
  haul sum ~/Pictures > pictures.b3         sums of all files, to be checked later
  haul files /srv/www                       files over HTTP
  haul relay --listen [::]:80 --to unix:/a  connections passed on

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

pub(super) const FILES: &str = "\
Examples:
  haul files /srv/www
  haul files /srv/www --listen 0.0.0.0:80 --public --access-log /var/log/files
  haul files . --listing --listen 127.0.0.1:0
  haul files /srv/www --listen unix:/run/files --admin 127.0.0.1:9002

  curl -C - -O http://127.0.0.1:8080/big.iso
  curl http://127.0.0.1:9002/metrics";

pub(super) const STORE: &str = "\
Examples:
  haul store import photos ~/Pictures
  haul store ls photos
  haul store get photos/cat.jpg cat.jpg
  haul store verify --data /srv/files";

pub(super) const BENCH: &str = "\
Examples:
  haul bench write-modes --dir .
  haul bench pacing --dir /var/tmp
  haul bench random-read --dir /var/tmp
  haul bench sequential-read --dir /var/tmp
  sudo haul bench read-order
  sudo haul bench random-write";

pub(super) const BENCH_PACING: &str = "\
Examples:
  haul bench pacing --dir /var/tmp
  haul bench pacing --dir /srv --bulk 8GiB --windows 4MiB,1MiB,32MiB --json pacing.json
  sudo haul bench pacing --dir /srv --virtual-disk ext4 --dirty-limit 512MiB";

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

pub(super) const BENCH_DIRECT_OR_CACHED: &str = "\
Examples:
  sudo haul bench direct-or-cached --dir /var/tmp
  sudo haul bench direct-or-cached --dir /srv --memory 8GiB --data-percent 50,100,200,600 --seconds 10s";

pub(super) const BENCH_APP_CACHE: &str = "\
Examples:
  sudo haul bench app-cache --dir /var/tmp
  sudo haul bench app-cache --dir /srv --memory 4GiB --hot-percent 20 --seconds 5s --json cache.json";

pub(super) const BENCH_RANDOM_WRITE: &str = "\
Examples:
  sudo haul bench random-write
  sudo haul bench random-write --records 200000 --file-size 10GiB --batches 1000000 --rounds 1
  haul bench random-write --drive none --dir /var/tmp --writers 1,16 --json write.json";

pub(super) const BENCH_DUPLICATES: &str = "\
Examples:
  haul bench duplicates --dir /var/tmp --files 20000 --big 1GiB
  sudo haul bench duplicates --dir /var/tmp --corpus small --rounds 11 --json small.json
  sudo haul bench duplicates --dir /var/tmp --corpus reflinks,spinning,paths";

pub(super) const BENCH_FILES: &str = "\
Examples:
  sudo haul bench files --dir /var/tmp --congestion cubic --json files.json
  haul bench files --dir /var/tmp --only hot --sizes 4KiB --rounds 11
  sudo haul bench files --dir /var/tmp --only latency --memory 512MiB --big-files 32";

pub(super) const BENCH_RELAY: &str = "\
Examples:
  sudo haul bench relay --congestion cubic --compare ./haul-bench-compare --json relay.json
  haul bench relay --only messages --sizes 64,4KiB,64KiB --rivals haproxy --rounds 11
  haul bench relay --only bulk --flows 1,4,16,64 --seconds 1s";

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

pub(super) const CACHE: &str = "\
Examples:
  haul cache status /srv/files
  haul cache warm /srv/files/hot
  haul cache evict --sync /srv/backup

Exit codes:
  0  everything went well, even if pages stayed or did not fit: that is told
  1  some files could not be looked at; the others were dealt with";

pub(super) const CACHE_STATUS: &str = "\
Examples:
  haul cache status /srv/files                            the 10 files with most in memory, and a sum
  haul cache status --files --json . | jq -r 'select(.resident_pages > 0).path'
  haul cache status --top 0 /usr /var                     only the sum";

pub(super) const CACHE_WARM: &str = "\
Examples:
  haul cache warm /var/lib/postgresql
  haul cache warm --max-bytes 4GiB /srv/files";

pub(super) const CACHE_EVICT: &str = "\
Examples:
  haul cache evict big.iso
  haul cache evict --sync /srv/backup                     after a backup was written";

pub(super) const PROBE: &str = "\
Examples:
  haul probe .
  haul probe --measure /srv
  haul probe --measure --size 4GiB --json /srv | jq .measured.depth";

pub(super) const TUNE: &str = "\
Examples:
  haul tune
  haul tune --measure /srv
  haul tune --all --json | jq '.findings[] | select(.weight == \"danger\")'
  haul tune --measure --apply --dry-run     look at it first
  sudo haul tune --measure --apply --undo-to undo-tune.sh

Exit codes:
  0  everything was told, and with --apply everything was set
  1  a disk could not be measured, or a setting could not be set: what was set is told
  2  the command line is wrong
  3  it could not start, and nothing was changed: no such path, not root
  130, 143  ended by Ctrl-C or SIGTERM while it measured";

pub(super) const DUPS: &str = "\
Examples:
  haul dups ~/Pictures
  haul dups ~/Pictures /backup > report     what is in ~/Pictures stays
  haul dups remove --dry-run < report       look at it first
  haul dups remove < report
  haul dups --min 1MiB --name '*.jpg' --exclude '**/cache/**' --cache .
  haul dups --unique --isolate disk1 disk2  what is on one of them alone
  haul dups --dirs ~/Pictures               whole directories
  find . -name '*.iso' -print0 | haul dups --stdin -0 --format json

Exit codes:
  0  every file was looked at
  1  some could not be read, or changed meanwhile; the report has all others
  2  the command line is wrong";

pub(super) const DUPS_REMOVE: &str = "\
Examples:
  haul dups ~/Pictures | haul dups remove --dry-run
  haul dups remove report --priority newest --keep-path '/backup/**'
  haul dups remove report --keep-root ~/Pictures --name '*.jpg'

Exit codes:
  0  every file went that was to go
  1  some were left as they are, which stderr tells
  2  the command line is wrong, or that of the report
  3  there is no whole report, and nothing was done
  130, 143  ended by Ctrl-C or SIGTERM after the file at hand";

pub(super) const DUPS_LINK: &str = "\
Examples:
  haul dups ~/Pictures | haul dups link
  haul dups link report --priority oldest";

pub(super) const DUPS_SYMLINK: &str = "\
Examples:
  haul dups /data /archive | haul dups symlink --keep-root /archive";

pub(super) const DUPS_DEDUPE: &str = "\
Examples:
  haul dups /data | haul dups dedupe";

pub(super) const DUPS_MOVE: &str = "\
Examples:
  haul dups ~/Pictures > report && haul dups move ~/duplicates report";

pub(super) const PATCH: &str = "\
Examples:
  make-records | haul patch disk.img
  haul patch disk.img --list changes.txt          lines such as: 1048576 boot.bin
  make-records | haul patch --atomic disk.img     all of them, or none
  haul patch --resume disk.img                    complete one that a crash interrupted
  make-records | haul patch --dry-run disk.img    what it would come to
  python3 -c 'import struct, sys
  sys.stdout.buffer.write(struct.pack(\"<QI\", 4096, 5) + b\"hello\")' | haul patch disk.img

Exit codes:
  0  every record is in the file, and on the medium
  1  some of it failed; what is in the file is told
  2  the command line is wrong
  3  it could not start: the file is not there, in use, or cannot be patched
  130, 143  ended by Ctrl-C or SIGTERM before everything was done";

pub(super) const SUM: &str = "\
Examples:
  haul sum ~/Pictures > pictures.b3
  haul sum --check pictures.b3              what changed, and what is missing
  haul sum --check pictures.b3 ~/Pictures   and what was added
  haul sum --hash sha256 *.iso | sha256sum -c
  haul sum --json --spare-cache /srv        a server keeps what it has in memory
  find . -name '*.jpg' -print0 | haul sum --files-from - -0

Exit codes:
  0  all sums were made, or all are right
  1  a file could not be read, or is not as the list says
  2  the command line is wrong";

pub(super) const RELAY: &str = "\
Examples:
  haul relay --listen 127.0.0.1:8080 --to 192.0.2.7:80
  haul relay --listen '[::]:22' --to unix:/run/sshd.sock
  haul relay --listen 0.0.0.0:443 --to 10.0.0.1:443 --to 10.0.0.2:443 --check-every 2s
  haul relay --listen 0.0.0.0:25 --to 10.0.0.1:25 --proxy-out v2
  haul relay --http --listen 0.0.0.0:80 --to 10.0.0.1:8080 --to 10.0.0.2:8080
  haul relay --listen 127.0.0.1:8080 --to 10.0.0.1:80 --admin 127.0.0.1:9002
  curl http://127.0.0.1:9002/metrics

Exit codes:
  0  it was asked to stop, and did
  1  it failed
  2  the command line is wrong
  3  it could not start: an address is taken
  130, 143  ended by a second Ctrl-C or SIGTERM";

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
