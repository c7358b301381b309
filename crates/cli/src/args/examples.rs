//! Contains the examples and exit codes that the long help of each command ends with.

pub(super) const HAUL: &str = "\
Examples:
  haul serve                                serve ./haul-data on 127.0.0.1:9000
  haul keys create alice                    create a key for a user of the server
  haul import-s3 --from http://minio:9000   copy the buckets of another S3 server
  haul store import photos ~/Pictures       store a directory tree
  haul store ls --long photos               list it
  haul store export photos ./copy           write it back
  haul bench write-modes --dir .            find the fastest write mode of this disk
  service 2>&1 | haul log /var/log/service  write output to rotated files
  haul wal verify /var/lib/service/log      verify an append log
  haul cache status /srv/files              show what of these files is cached
  haul probe --measure /srv                 examine and measure the disk
  haul doctor /srv                          check the machine
  haul tune --measure                       explain stalls of writers, recommend settings
  haul dups ~/Pictures                      find duplicate files
  records | haul patch disk.img             write records to a large file in offset order
  haul sum ~/Pictures > pictures.b3         compute checksums, to verify later
  haul files /srv/www                       serve files over HTTP
  haul relay --listen [::]:80 --to unix:/a  forward connections

Exit codes:
  0  success, also if the reader of stdout closed it, as head does
  1  part of the work failed, damage or differences were found, an object does not exist, or
     stdout cannot be written
  2  invalid command line
  3  cannot start: a path of the command line does not exist, a store is in use or not a store, or
     an address is in use. Commands with several paths process the others
  130, 143  interrupted by Ctrl-C or SIGTERM";

pub(super) const HEALTH: &str = "\
Examples:
  haul health
  haul health 127.0.0.1:9001/ready
  haul health https://s3.example.com/health
  until haul health --timeout 1s; do sleep 1; done";

pub(super) const EVENTS: &str = "\
Examples:
  haul events
  haul events --json 127.0.0.1:9001
  haul events --retry --credentials keys https://s3.example.com:9001";

pub(super) const SERVE: &str = "\
Examples:
  haul serve
  haul serve --data /srv/files --bucket photos --bucket notes
  haul serve --data /srv/files --listen 127.0.0.1:8000 --admin 127.0.0.1:8001
  HAUL_ACCESS_KEY=me HAUL_SECRET_KEY=secret haul serve --listen 0.0.0.0:9000 --plain-http
  haul serve --credentials keys --listen '[::]:443' --tls-cert cert.pem --tls-key key.pem
  haul serve --keys haul-keys.json --sealing-key haul-sealing-key
  haul serve --event-targets events.toml
  haul serve --data /srv/files --print-config > serve.toml
  haul serve --config serve.toml

  curl -X PUT http://127.0.0.1:9000/photos
  curl -T cat.jpg http://127.0.0.1:9000/photos/cat.jpg";

pub(super) const FILES: &str = "\
Examples:
  haul files /srv/www
  haul files /srv/www --listen 0.0.0.0:80 --plain-http --access-log /var/log/files
  haul files . --listing --listen 127.0.0.1:0
  haul files /srv/www --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem
  haul files /srv/www --listen unix:/run/files --admin 127.0.0.1:9002

  curl -C - -O http://127.0.0.1:8080/big.iso
  curl http://127.0.0.1:9002/metrics";

pub(super) const BENCH: &str = "\
Examples:
  haul bench write-modes --dir .
  sudo haul bench random-write
  haul bench log --help";

pub(super) const STORE: &str = "\
Examples:
  haul store import photos ~/Pictures
  haul store ls photos
  haul store get photos/cat.jpg cat.jpg
  haul store verify --data /srv/files";

pub(super) const CACHE: &str = "\
Examples:
  haul cache status /srv/files
  haul cache warm /srv/files/hot
  haul cache evict --sync /srv/backup

Exit codes:
  0  success, even if pages could not be evicted or did not fit
  1  some files could not be processed
  2  invalid command line
  3  a path of the command line does not exist; the others were processed";

pub(super) const CACHE_STATUS: &str = "\
Examples:
  haul cache status /srv/files                            the 10 most cached files, and a total
  haul cache status --files --json . | jq -r 'select(.resident_pages > 0).path'
  haul cache status --top 0 /usr /var                     only the total";

pub(super) const CACHE_WARM: &str = "\
Examples:
  haul cache warm /var/lib/postgresql
  haul cache warm --max-bytes 4GiB /srv/files";

pub(super) const CACHE_EVICT: &str = "\
Examples:
  haul cache evict big.iso
  haul cache evict --sync /srv/backup                     after a backup";

pub(super) const PROBE: &str = "\
Examples:
  haul probe .
  haul probe --measure /srv
  haul probe --measure --svg disk.svg /srv  draw the rates and latencies
  haul probe --measure --size 4GiB --json /srv | jq .measured.depth";

pub(super) const TUNE: &str = "\
Examples:
  haul tune
  haul tune --measure /srv
  haul tune --all --json | jq '.findings[] | select(.weight == \"danger\")'
  haul tune --measure --apply --dry-run     preview the changes
  sudo haul tune --measure --apply --undo-to undo-tune.sh
  sudo haul tune --measure --persist        change settings for longer than until reboot
  sudo haul tune --revert                   restore the values before

Exit codes:
  0  success
  1  a disk could not be measured, or a setting or a file could not be changed
  2  invalid command line
  3  cannot start, nothing was changed: no such path, not root, an unreliable rate
  130, 143  interrupted by Ctrl-C or SIGTERM while measuring";

pub(super) const DUPS: &str = "\
Examples:
  haul dups ~/Pictures
  haul dups ~/Pictures /backup > report     prefer to keep files in ~/Pictures
  haul dups remove --dry-run < report       preview
  haul dups remove < report
  haul dups --min 1MiB --name '*.jpg' --exclude '**/cache/**' --cache .
  haul dups --unique --isolate disk1 disk2  files on only one of them
  haul dups --dirs ~/Pictures               duplicate directories
  find . -name '*.iso' -print0 | haul dups --stdin -0 --json

Exit codes:
  0  all files were read
  1  some files could not be read, or changed; the report has the others
  2  invalid command line
  3  a path of the command line does not exist; the report has the others";

pub(super) const DUPS_REMOVE: &str = "\
Examples:
  haul dups ~/Pictures | haul dups remove --dry-run
  haul dups remove report --priority newest --keep-path '/backup/**'
  haul dups remove report --keep-root ~/Pictures --name '*.jpg'
  haul dups remove report --json | jq -r 'select(.kind == \"file\").path'

Exit codes:
  0  all selected files were processed
  1  some files were skipped; stderr has the reasons
  2  invalid command line, of this command or in the report
  3  missing or incomplete report, nothing was done
  130, 143  interrupted by Ctrl-C or SIGTERM between two files";

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
  make-records | haul patch --atomic disk.img     all records or none
  haul patch --resume disk.img                    complete an interrupted patch
  make-records | haul patch --dry-run disk.img    check records, print the cost
  python3 -c 'import struct, sys
  sys.stdout.buffer.write(struct.pack(\"<QI\", 4096, 5) + b\"hello\")' | haul patch disk.img

Exit codes:
  0  all records are written and synced
  1  the patch failed in part; the report shows what was written
  2  invalid command line
  3  cannot start: the file or the list is missing, in use, or cannot be patched
  130, 143  interrupted by Ctrl-C or SIGTERM";

pub(super) const SUM: &str = "\
Examples:
  haul sum ~/Pictures > pictures.b3
  haul sum --check pictures.b3              changed and missing files
  haul sum --check pictures.b3 ~/Pictures   and added files
  haul sum --hash sha256 *.iso | sha256sum -c
  haul sum --json --spare-cache /srv        without disturbing the page cache
  find . -name '*.jpg' -print0 | haul sum --files-from - -0

Exit codes:
  0  all checksums were computed or verified
  1  a file could not be read, or does not match
  2  invalid command line
  3  a path of the command line does not exist; the others were processed";

pub(super) const RELAY: &str = "\
Examples:
  haul relay --listen 127.0.0.1:8080 --to 192.0.2.7:80
  haul relay --listen '[::]:22' --to unix:/run/sshd.sock
  haul relay --listen 0.0.0.0:443 --to 10.0.0.1:443 --to 10.0.0.2:443 --check-every 2s
  haul relay --listen 0.0.0.0:25 --to 10.0.0.1:25 --proxy-out v2
  haul relay --http --listen 0.0.0.0:80 --plain-http --to 10.0.0.1:8080 --to 10.0.0.2:8080
  haul relay --http --listen 0.0.0.0:443 --to 10.0.0.1:8080 --tls-cert a.pem --tls-key a.key
  haul relay --listen 127.0.0.1:8080 --to 10.0.0.1:80 --admin 127.0.0.1:9002
  curl http://127.0.0.1:9002/metrics

Exit codes:
  0  stopped by a signal
  1  failed
  2  invalid command line
  3  cannot start: an address is in use
  130, 143  interrupted by a second Ctrl-C or SIGTERM";

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
  haul store import photos ~/Pictures --skip-existing     only new and changed files
  haul store import photos ~/Pictures --json --progress";

pub(super) const EXPORT: &str = "\
Examples:
  haul store export photos ./copy
  haul store export backup/2026-11-21/etc/ ./etc          without the prefix";

pub(super) const IMPORT_TAR: &str = "\
Examples:
  haul store import-tar photos photos.tar
  zstd -d < photos.tar.zst | haul store import-tar photos/2026/
  ssh nas tar -C /srv/photos -c . | haul store import-tar photos";

pub(super) const EXPORT_TAR: &str = "\
Examples:
  haul store export-tar photos photos.tar
  haul store export-tar photos/2026/ | zstd > photos.tar.zst
  haul store export-tar photos | ssh nas haul store import-tar photos";

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
  haul store ls                                           list buckets
  haul store ls -l photos/2026/
  haul store ls -r --json photos | jq -r 'select(.bytes > 1e6).key'";

pub(super) const STAT: &str = "\
Examples:
  haul store stat photos
  haul store stat --json photos/cat.jpg | jq -r .etag";

pub(super) const RM: &str = "\
Examples:
  haul store rm photos/cat.jpg photos/dog.jpg
  haul store rm --recursive photos/2019/                  asks for confirmation
  haul store rm --recursive --yes photos                  empties the bucket";

pub(super) const MB: &str = "\
Examples:
  haul store mb photos";

pub(super) const RB: &str = "\
Examples:
  haul store rb photos";

pub(super) const VERSIONING: &str = "\
Examples:
  haul store versioning photos enable
  haul store ls --versions photos
  haul store get photos/cat.jpg --version-id 18f1e2d3c4b5a697 cat.jpg";

pub(super) const VERIFY: &str = "\
Examples:
  haul store verify
  haul store verify --json | jq -r 'select(.kind == \"damage\").key'";

pub(super) const ACCEPT_DAMAGE: &str = "\
Examples:
  haul store verify; haul store accept-damage";

pub(super) const SNAPSHOT: &str = "\
Examples:
  haul store --data /srv/haul snapshot /srv/haul-monday
  haul store --data /srv/haul-monday ls --recursive photos/";

pub(super) const RESTORE: &str = "\
Examples:
  haul store --data /srv/haul restore --remote s3://backup/haul
  haul store --data /srv/haul restore --remote s3://backup/haul --remote-options /etc/haul/remote
  haul store --data /srv/old restore --remote s3://backup/haul --at \"2h ago\"
  haul store --data /d1 --data /d2 restore --remote s3://backup/haul";

pub(super) const LIFECYCLE: &str = "\
Examples:
  haul store lifecycle set logs rules.json
  haul store lifecycle run --dry-run logs";

pub(super) const LIFECYCLE_SHOW: &str = "\
Examples:
  haul store lifecycle show logs
  haul store lifecycle show --json logs > rules.json";

pub(super) const LIFECYCLE_SET: &str = "\
Examples:
  haul store lifecycle set logs rules.json
  haul store lifecycle set logs < rules.xml

A file that expires logs after 30 days, and aborts uploads after 7 days:
  {\"Rules\": [{\"ID\": \"old\", \"Status\": \"Enabled\", \"Filter\": {\"Prefix\": \"logs/\"},
    \"Expiration\": {\"Days\": 30}, \"AbortIncompleteMultipartUpload\": {\"DaysAfterInitiation\": 7}}]}";

pub(super) const LIFECYCLE_REMOVE: &str = "\
Examples:
  haul store lifecycle remove logs";

pub(super) const LIFECYCLE_RUN: &str = "\
Examples:
  haul store lifecycle run --dry-run
  haul store lifecycle run logs && haul store compact";

pub(super) const COMPACT: &str = "\
Examples:
  haul store rm --recursive photos/2019/ && haul store compact";

pub(super) const MAP: &str = "\
Examples:
  haul store map --data /srv/files
  haul store map --data /srv/files --svg volumes.svg";
