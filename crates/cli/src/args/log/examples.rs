//! Contains the examples and exit codes that the long help of `haul log` ends with.

pub(crate) const LOG: &str = "\
Examples:
  service 2>&1 | haul log /var/log/service
  service 2>&1 | haul log logs --max-size 100MiB --keep 20 --timestamps
  service 2>&1 | haul log logs --rotate-at 00:00 --max-size none --keep-time 30d
  service 2>&1 | haul log logs --compress zstd --keep all --keep-bytes 10GiB --sync 1s --tee
  service 2>&1 | grep --line-buffered -v DEBUG | haul log logs

  tail -F logs/current
  haul log show logs                        everything, in order
  haul log show logs --since 10m

Exit codes:
  0  all lines were written
  1  lines were lost, a sync failed, or --tee could not write to stdout
  2  invalid command line
  3  cannot start: the directory is in use or cannot be used
  130, 143  interrupted by a second signal

Options of multilog, svlogd and s6-log:
  sSIZE                 --max-size; files end before the line that does not fit
  nNUM                  --keep
  STOTAL (s6-log)       --keep-bytes
  NMIN (svlogd)         --when-full remove-oldest --keep-min
  tTIMEOUT (svlogd)     --rotate-every or --rotate-at
  t, -t                 --timestamps=tai64n
  -tt, -ttt, T          --timestamps
  !PROCESSOR, ?         --compress zstd; no other processors
  1 (s6-log)            --tee
  -b (svlogd)           --memory
  SIGALRM, SIGHUP       both rotate
  +PATTERN, -PATTERN    not offered: grep --line-buffered before haul log
  e, E, 2, =FILE, ^     not offered: --tee, grep and tail
  p, -r, -R (svlogd)    not offered: sed -u before haul log
  -l, l                 not needed: lines are not split
  u, U (svlogd)         not offered: UDP loses lines
  rCOOLDOWN (s6-log)    a failed write is retried each second
  -d, -p, -q, -v        not offered";

pub(super) const SHOW: &str = "\
Examples:
  haul log show /var/log/service
  haul log show logs --since 10m
  haul log show logs --since '2026-11-21 07:00' --until '2026-11-21 07:30' | grep ERROR
  haul log show logs --since yesterday --until today
  haul log show logs --since 1h --json | jq -r .text

Exit codes:
  0  success
  1  a file cannot be read, or the log removed a file meanwhile
  2  invalid command line
  3  the directory is not a log";
