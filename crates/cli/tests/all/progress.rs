//! Tests the option `--progress` of long commands, whose stderr is no terminal.

use crate::helper::TestDir;

#[test]
fn progress_is_shown_without_a_terminal_only_if_requested() {
    let place = TestDir::on_disk();
    place.write("tree/a", "same");
    place.write("tree/d/b", "same");
    place.write("list", "0 tree/a\n8 tree/d/b\n");
    place.write("target", [0; 100]);
    let sums = place.run(&["sum", "tree"]).code(0);
    place.write("sums", sums.stdout());
    for (arguments, line) in [
        (&["sum", "tree"][..], "haul: finding files: 2 files, 8 B"),
        (&["sum", "tree"], "haul: 100 %  2 of 2 files, 8 B of 8 B, "),
        (&["sum", "--check", "sums"], "haul: 100 %  2 of 2 files, 8 B of 8 B, "),
        (&["dups", "tree"], "haul: finding files"),
        (&["cache", "warm", "tree"], "files, "),
        (&["patch", "target", "--list", "list"], "haul: 100 %  2 of 2 records, 8 B of 8 B, "),
        (&["store", "import", "b-1", "tree"], "haul: 100 %  2 of 2 files, 8 B of 8 B, "),
        (&["store", "export", "b-1", "copy"], "haul: 100 %  2 of 2 objects, 8 B of 8 B, "),
        (&["store", "export-tar", "b-1", "tar"], "haul: 100 %  2 of 2 objects, 8 B of 8 B, "),
        (&["store", "import-tar", "b-2", "tar"], "haul: 2 files, 8 B, "),
        (&["store", "verify"], "haul: 100 %  4 of 4 objects, 16 B of 16 B, "),
        (&["store", "compact"], "haul: 0 volumes, 0 B, "),
    ] {
        for (progress, is_shown) in
            [(None, false), (Some("--progress"), true), (Some("--progress=false"), false)]
        {
            let mut words = arguments.to_vec();
            words.extend(progress);
            let ended = place.run(&words).code(0);
            let found = ended.stderr().lines().any(|text| text.contains(line));
            assert_eq!(found, is_shown, "{words:?} {line}\n{}", ended.stderr());
        }
    }
    place.run(&["sum", "--progress=maybe", "tree"]).code(2).stderr_contains(&["auto, true, false"]);
}
