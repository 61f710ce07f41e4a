//! A library that contains sections stays in memory after `dlclose`: threads that counted in it may
//! still have its descriptor in their area when they are preempted next.
//!
//! The library is the example `dlclosed`.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#![cfg(not(countersink_portable))]
#![allow(unsafe_code)]

use core::ffi::c_void;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::mpsc::channel;

mod common;

use common::child::{self, Setting};

/// Threads that count in the library and live on.
const THREADS: usize = 8;
/// How often each of them is preempted afterwards.
const YIELDS: u32 = 2_000;
const ADDS: u64 = 100_000;

type Count = extern "C" fn(u64) -> u64;

/// Where `cargo test` puts the example.
fn library() -> CString {
    let program = std::env::current_exe().expect("this program has a path");
    let directory = program.ancestors().nth(2).expect("target/debug/deps/pin");
    let path: PathBuf = directory.join("examples/libdlclosed.so");
    assert!(
        path.exists(),
        "cargo test builds {path:?}; so does cargo build --examples"
    );
    CString::new(path.into_os_string().into_encoded_bytes()).expect("no zero in it")
}

fn open(library: &CString, flags: i32) -> *mut c_void {
    // SAFETY: our own library, whose constructor only pins it.
    unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | flags) }
}

fn is_loaded(library: &CString) -> bool {
    let handle = open(library, libc::RTLD_NOLOAD);
    if !handle.is_null() {
        // SAFETY: just opened.
        unsafe { libc::dlclose(handle) };
    }
    !handle.is_null()
}

/// Whether an address is in a loaded object's code or data.
fn is_mapped(address: *const c_void) -> bool {
    // SAFETY: dladdr fills the structure.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(address, &mut info) != 0
    }
}

/// Opens the library, counts in it on threads that live on, closes it, and has them preempted.
fn close_while_threads_live_on() -> u64 {
    let library = library();
    assert!(!is_loaded(&library));
    let handle = open(&library, 0);
    assert!(!handle.is_null(), "{library:?} cannot be loaded");
    // SAFETY: the name ends; the function has this type, see the example.
    let count = unsafe {
        let symbol = libc::dlsym(handle, c"countersink_dlclosed_count".as_ptr());
        assert!(!symbol.is_null());
        core::mem::transmute::<*mut c_void, Count>(symbol)
    };
    let (counted, all_counted) = channel();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let counted = counted.clone();
                let (close, closed) = channel::<()>();
                scope.spawn(move || {
                    counted.send(count(ADDS)).expect("somebody waits");
                    // No section runs between this thread's last count and the close. Waiting,
                    // yielding and running its time out are three ways to be preempted.
                    closed.recv().expect("the library is closed");
                    for _ in 0..YIELDS {
                        std::thread::yield_now();
                    }
                });
                close
            })
            .collect();
        let counts = (0..THREADS).map(|_| all_counted.recv().expect("each counts"));
        assert_eq!(counts.max(), Some(THREADS as u64 * ADDS));
        // SAFETY: opened above. Nothing of it is used after this unless it is still there.
        assert_eq!(unsafe { libc::dlclose(handle) }, 0);
        assert!(is_loaded(&library), "the library is gone");
        assert!(is_mapped(count as *const c_void), "its code is gone");
        threads
            .iter()
            .for_each(|close| close.send(()).expect("it waits"));
    });
    // Closing it more often changes nothing, and it still counts.
    for _ in 0..3 {
        let handle = open(&library, 0);
        // SAFETY: just opened.
        assert_eq!(unsafe { libc::dlclose(handle) }, 0);
    }
    assert!(is_loaded(&library));
    assert_eq!(count(1), THREADS as u64 * ADDS + 1);
    count(0)
}

#[test]
fn a_closed_library_stays() {
    for setting in [Setting::AsIs, Setting::OwnRegistration] {
        child::run(
            "a_closed_library_stays",
            setting,
            close_while_threads_live_on,
        );
    }
}

/// What the check sees of a library that nobody pinned: it does go.
#[test]
fn a_library_that_is_not_pinned_goes() {
    child::run("a_library_that_is_not_pinned_goes", Setting::AsIs, || {
        let library = CString::from(c"libutil.so.1");
        if is_loaded(&library) || open(&library, 0).is_null() {
            println!("no library here that is not loaded yet");
            return 1;
        }
        let handle = open(&library, 0);
        // SAFETY: opened twice.
        let closed = unsafe { [libc::dlclose(handle), libc::dlclose(handle)] };
        assert_eq!(closed, [0, 0]);
        assert!(!is_loaded(&library), "it should have been unloaded");
        1
    });
}
