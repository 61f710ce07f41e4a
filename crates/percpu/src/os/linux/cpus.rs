//! How many CPUs there can be, and which one this is.
#![allow(unsafe_code)]

use core::ffi::CStr;

use rustix::fs::{CWD, Mode, OFlags};

/// The largest possible CPU number and one.
///
/// Never the online or the allowed CPUs: a thread can find itself on any possible one. Callable
/// from a signal handler: a file is read into a buffer on the stack.
pub(super) fn possible() -> u32 {
    read_possible().unwrap_or_else(kernel_mask_bits).max(1)
}

/// How many CPUs are running just now; as many as are possible where that is not told.
pub(crate) fn online() -> u32 {
    read_list(c"/sys/devices/system/cpu/online", parse_list_count)
        .unwrap_or_else(possible)
        .max(1)
}

fn read_possible() -> Option<u32> {
    read_list(c"/sys/devices/system/cpu/possible", parse_list_end)
}

fn read_list(path: &CStr, parse: fn(&[u8]) -> Option<u32>) -> Option<u32> {
    let file =
        rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = [0; 512];
    let length = rustix::io::read(&file, &mut buffer).ok()?;
    // A list that fills the buffer may have been cut in the middle of a number.
    (length < buffer.len()).then(|| parse(&buffer[..length]))?
}

/// How many numbers there are in a list like `0-3,8-11`.
fn parse_list_count(list: &[u8]) -> Option<u32> {
    let text = core::str::from_utf8(list).ok()?.trim_end();
    text.split(',').try_fold(0_u32, |count, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        count.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// The largest number in a list like `0-3,8-11`, and one; such a list ascends.
fn parse_list_end(list: &[u8]) -> Option<u32> {
    let text = core::str::from_utf8(list).ok()?.trim_end();
    let last = text.rsplit([',', '-']).next()?;
    last.parse::<u32>().ok()?.checked_add(1)
}

/// Without /sys: the kernel's CPU masks hold every possible CPU, rounded up to whole words.
///
/// Apart from its caller, and with room for 8,192 CPUs only: a handler's stack may be small.
#[cold]
#[inline(never)]
fn kernel_mask_bits() -> u32 {
    let mut mask = [0_u64; 128];
    // SAFETY: the kernel writes at most the given number of bytes to the buffer. `errno` stays what it
    // was: this may run in a handler.
    let bytes = unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let bytes = libc::syscall(
            libc::SYS_sched_getaffinity,
            0,
            size_of_val(&mask),
            mask.as_mut_ptr(),
        );
        *errno = before;
        bytes
    };
    u32::try_from(bytes).unwrap_or(0) * 8
}

/// The CPU that this thread is on, just now.
pub(crate) fn current() -> Option<u32> {
    // SAFETY: no preconditions.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_list() {
        for (list, end) in [
            ("0\n", Some(1)),
            ("0-1\n", Some(2)),
            ("0-3,8-11\n", Some(12)),
            ("0,64\n", Some(65)),
            ("0-8191", Some(8192)),
            ("", None),
            ("\n", None),
            ("0-\n", None),
            ("x\n", None),
            ("4294967295\n", None),
        ] {
            assert_eq!(parse_list_end(list.as_bytes()), end, "{list:?}");
        }
    }

    #[test]
    fn the_length_of_a_list() {
        for (list, count) in [
            ("0\n", Some(1)),
            ("0-1\n", Some(2)),
            ("0-3,8-11\n", Some(8)),
            ("0,2,64\n", Some(3)),
            ("", None),
            ("3-1\n", None),
            ("0-\n", None),
            ("0-4294967295\n", None),
        ] {
            assert_eq!(parse_list_count(list.as_bytes()), count, "{list:?}");
        }
        assert!((1..=possible()).contains(&online()));
    }

    #[test]
    fn both_ways_cover_this_cpu() {
        let here = current().expect("Linux tells the CPU");
        assert!(here < possible());
        assert!(possible() <= kernel_mask_bits());
    }
}
