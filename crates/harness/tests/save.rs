//! A file is written completely or not at all, and nothing else is left.

use std::fs;
use std::io::Read;
use std::path::Path;

use countersink_harness::save::{SaveError, check_writable, save};

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Both functions must say the same, in one line that names the path.
fn refused(path: &Path) -> SaveError {
    let checked = check_writable(path).expect_err("refused");
    let saved = save(path, b"new").expect_err("refused");
    assert_eq!(checked.to_string(), saved.to_string());
    let message = saved.to_string();
    assert!(message.contains(&path.display().to_string()), "{message}");
    assert!(!message.contains('\n'), "{message}");
    saved
}

#[test]
fn a_new_file_and_a_replaced_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("r.json");
    check_writable(&path).expect("writable");
    assert_eq!(names(dir.path()), [""; 0]);
    for text in ["first, and longer", "second"] {
        save(&path, text.as_bytes()).expect("saved");
        check_writable(&path).expect("writable");
        assert_eq!(fs::read_to_string(&path).expect("text"), text);
        assert_eq!(names(dir.path()), ["r.json"]);
    }
}

/// Whoever has the old file open sees all of it: it was replaced, not written over. A save that
/// writes in place, and so can stop half way, fails here.
#[test]
fn the_old_text_is_never_written_over() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("r.json");
    save(&path, b"old").expect("saved");
    let mut open = fs::File::open(&path).expect("a file");
    save(&path, b"new").expect("saved");
    let mut text = String::new();
    open.read_to_string(&mut text).expect("text");
    assert_eq!(text, "old");
}

#[test]
fn a_directory_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    assert!(matches!(refused(dir.path()), SaveError::IsDirectory(_)));
    let slash = dir.path().join("not-there/");
    assert!(matches!(refused(&slash), SaveError::IsDirectory(_)));
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn a_missing_directory_is_refused_and_not_made() {
    let dir = tempfile::tempdir().expect("a directory");
    let error = refused(&dir.path().join("no/r.json"));
    assert!(matches!(error, SaveError::NoDirectory { .. }), "{error}");
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn a_file_in_the_place_of_a_directory_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("file"), "old").expect("a file");
    refused(&dir.path().join("file/r.json"));
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn an_empty_path_is_refused() {
    check_writable(Path::new("")).expect_err("refused");
    save(Path::new(""), b"new").expect_err("refused");
}

#[test]
fn a_read_only_file_is_refused_and_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("r.json");
    fs::write(&path, "old").expect("a file");
    let mut permissions = fs::metadata(&path).expect("metadata").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).expect("read-only");
    assert!(matches!(refused(&path), SaveError::ReadOnly(_)));
    assert_eq!(fs::read_to_string(&path).expect("text"), "old");
    assert_eq!(names(dir.path()), ["r.json"]);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_symlink_stays_and_its_target_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let real = dir.path().join("real");
        fs::create_dir(&real).expect("a directory");
        fs::write(real.join("r.json"), "old").expect("a file");
        symlink("real/r.json", dir.path().join("link")).expect("a link");
        symlink("link", dir.path().join("link2")).expect("a link");
        save(&dir.path().join("link2"), b"new").expect("saved");
        assert_eq!(
            fs::read_to_string(real.join("r.json")).expect("text"),
            "new"
        );
        assert!(dir.path().join("link").is_symlink());
        assert_eq!(names(dir.path()), ["link", "link2", "real"]);
    }

    #[test]
    fn a_dangling_symlink_gets_its_target() {
        let dir = tempfile::tempdir().expect("a directory");
        symlink("r.json", dir.path().join("link")).expect("a link");
        check_writable(&dir.path().join("link")).expect("writable");
        assert_eq!(names(dir.path()), ["link"]);
        save(&dir.path().join("link"), b"new").expect("saved");
        assert_eq!(
            fs::read_to_string(dir.path().join("r.json")).expect("text"),
            "new"
        );
    }

    #[test]
    fn symlinks_in_a_circle_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        symlink("b", dir.path().join("a")).expect("a link");
        symlink("a", dir.path().join("b")).expect("a link");
        assert!(matches!(
            refused(&dir.path().join("a")),
            SaveError::LinkLoop(_)
        ));
    }

    #[test]
    fn permissions_are_kept_and_new_files_are_not_private() {
        let dir = tempfile::tempdir().expect("a directory");
        let mode = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::write(&old, "old").expect("a file");
        fs::set_permissions(&old, PermissionsExt::from_mode(0o640)).expect("a mode");
        save(&old, b"new").expect("saved");
        assert_eq!(mode(&old), 0o640);
        save(&new, b"new").expect("saved");
        let plain = dir.path().join("plain");
        fs::write(&plain, "").expect("a file");
        assert_eq!(mode(&new), mode(&plain));
    }

    #[test]
    fn devices_are_written_to_and_stay() {
        for path in ["/dev/null", "/dev/stderr", "/dev/stdout"] {
            check_writable(Path::new(path)).expect("writable");
        }
        save(Path::new("/dev/null"), b"new").expect("saved");
        assert!(!fs::metadata("/dev/null").expect("metadata").is_file());
    }

    /// Not even root may create files there.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_directory_that_takes_no_files_is_refused() {
        let error = refused(Path::new("/proc/self/r.json"));
        assert!(matches!(error, SaveError::NoNewFile { .. }), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error() {
        check_writable(Path::new("/dev/full")).expect("can be opened");
        save(Path::new("/dev/full"), b"new").expect_err("full");
    }
}
