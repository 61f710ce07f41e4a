//! The two documented variables that say where the region is to be.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char};

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// What the environment asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    /// `COUNTERSINK_REGION`: a region that is there.
    Join(&'static CStr),
    /// `COUNTERSINK_DIR`: a file in this directory.
    Directory(&'static CStr),
    /// Nothing.
    None,
}

/// Looks at the environment, as `getenv` does: without a lock, since this may be a signal handler that
/// interrupted whoever holds one. A program with more rights than its user has is not led astray.
pub(crate) fn setting() -> Setting {
    // SAFETY: no preconditions.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return Setting::None;
    }
    if let Some(path) = variable(b"COUNTERSINK_REGION=") {
        return Setting::Join(path);
    }
    match variable(b"COUNTERSINK_DIR=") {
        Some(path) => Setting::Directory(path),
        None => Setting::None,
    }
}

/// The value, if there is one that is not empty.
fn variable(name_and_equals: &[u8]) -> Option<&'static CStr> {
    // SAFETY: the C library's array, which ends with null. Changing the environment while other threads
    // run is unsafe in Rust for just this reason.
    unsafe {
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            let entry = CStr::from_ptr(*next);
            let value = entry.to_bytes_with_nul().strip_prefix(name_and_equals);
            if let Some(value) = value.and_then(|value| CStr::from_bytes_with_nul(value).ok()) {
                return (!value.is_empty()).then_some(value);
            }
            next = next.add(1);
        }
    }
    None
}
