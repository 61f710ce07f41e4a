//! File systems that are full, or cannot be written to: each mounted for one process only.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use countersink::reader::files_in;

use crate::child::{Act, Child, argument, is_root, tell};
use crate::directory::{names, temporary, value};
use crate::work::{TOTAL, count_and_check};

pub(crate) const ACTS: &[Act] = &[("mounts::count", mounted)];

/// Mounts a file system of its own, for itself, and counts in a directory there.
fn mounted() {
    let argument = argument();
    let mut words = argument.split(' ');
    let (place, options) = (
        words.next().expect("a place"),
        words.next().expect("options"),
    );
    mount(place, options);
    let directory = Path::new(place).join("regions");
    DirBuilder::new()
        .mode(0o700)
        .create(&directory)
        .expect("a directory");
    if options.contains("ro") {
        remount_read_only(place);
    }
    // SAFETY: no other thread is there yet that looks at the environment.
    unsafe { std::env::set_var("COUNTERSINK_DIR", &directory) };
    // Several threads at once would need room for a file each, for a moment.
    countersink::region::status();
    count_and_check();
    let files = files_in(&directory).expect("trusted");
    tell("files", files.len());
    tell("names", names(&directory).len());
    if let Some(file) = files.into_iter().next() {
        assert_eq!(value(&file.region.expect("a region")), TOTAL);
    }
}

fn mount(place: &str, options: &str) {
    let (place, options) = (CString::new(place), CString::new(options));
    let (place, options) = (place.expect("a path"), options.expect("a text"));
    // SAFETY: texts that end with zero, or none.
    unsafe {
        let none = core::ptr::null();
        assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0);
        let private = libc::MS_REC | libc::MS_PRIVATE;
        assert_eq!(
            libc::mount(none, c"/".as_ptr(), none, private, none.cast()),
            0
        );
        let size = options.as_ptr();
        let tmpfs = c"tmpfs".as_ptr();
        let size = if options.to_bytes() == b"ro" {
            c"size=20m".as_ptr()
        } else {
            size
        };
        let mounted = libc::mount(tmpfs, place.as_ptr(), tmpfs, 0, size.cast());
        assert_eq!(mounted, 0, "{}", std::io::Error::last_os_error());
    }
}

fn remount_read_only(place: &str) {
    let place = CString::new(place).expect("a path");
    let flags = libc::MS_REMOUNT | libc::MS_RDONLY;
    // SAFETY: a text that ends with zero.
    let result = unsafe {
        let none = core::ptr::null();
        libc::mount(none, place.as_ptr(), none, flags, none.cast())
    };
    assert_eq!(result, 0);
}

#[test]
fn file_systems_that_are_full_or_cannot_be_written() {
    if !is_root("mounting small file systems") {
        return;
    }
    let temporary = temporary();
    let place = temporary.path().display().to_string();
    for place in [&*place, "/dev/shm"] {
        let run = |options: &str| {
            let child = Child::new("mounts::count");
            let outcome = child.argument(format!("{place} {options}")).run();
            println!("{options} at {place}: {}", outcome.last_lines());
            outcome
        };
        // Not even the smallest region.
        let outcome = run("size=256k");
        assert_eq!(
            (outcome.value("place"), outcome.value("home")),
            ("memfd", "region")
        );
        assert!(
            outcome.value("hindrance").contains("No space left"),
            "{}",
            outcome.text
        );
        assert_eq!((outcome.number("files"), outcome.number("names")), (0, 0));
        // A smaller one than wanted.
        let outcome = run("size=2m");
        assert_eq!(
            (outcome.value("place"), outcome.number("files")),
            ("file", 1)
        );
        assert_eq!(outcome.number("names"), 1);
        let outcome = run("ro");
        assert_eq!(
            (outcome.value("place"), outcome.number("names")),
            ("memfd", 0)
        );
        assert!(
            outcome.value("hindrance").contains("Read-only"),
            "{}",
            outcome.text
        );
    }
}
