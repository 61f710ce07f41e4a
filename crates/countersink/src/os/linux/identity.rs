//! What the kernel tells of this process and machine, read into buffers on the stack.

use core::ffi::CStr;

use rustix::fs::{CWD, Mode, OFlags, openat, stat};

use crate::os::Identity;

/// Who this process is.
pub(crate) fn identity() -> Identity {
    let mut program = [0; 64];
    let mut buffer = [0; 64];
    for (place, byte) in program
        .iter_mut()
        .zip(read(c"/proc/self/comm", &mut buffer))
    {
        *place = if *byte == b'\n' { 0 } else { *byte };
    }
    Identity {
        pid: rustix::process::getpid().as_raw_pid() as u32,
        uid: rustix::process::geteuid().as_raw(),
        start_time: start_time().unwrap_or(0),
        pid_namespace: stat(c"/proc/self/ns/pid").map_or(0, |status| status.st_ino),
        boot: boot().unwrap_or([0; 16]),
        program,
    }
}

/// Field 22 of the line, counted behind the program's name, which may contain anything.
fn start_time() -> Option<u64> {
    // Longer than the line can be up to there.
    let mut buffer = [0; 512];
    let line = read(c"/proc/self/stat", &mut buffer);
    let name_end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = core::str::from_utf8(&line[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn boot() -> Option<[u8; 16]> {
    let mut buffer = [0; 64];
    let text = read(c"/proc/sys/kernel/random/boot_id", &mut buffer);
    let mut digits = text.iter().filter_map(|byte| (*byte as char).to_digit(16));
    let mut boot = [0; 16];
    for byte in &mut boot {
        *byte = (digits.next()? << 4 | digits.next()?) as u8;
    }
    Some(boot)
}

/// Whether the kernel itself takes its time from the cycle counter, so that it has found the counters
/// of all CPUs to agree.
pub(crate) fn uses_tsc_clock_source() -> bool {
    let path = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    read(path, &mut [0; 64]) == b"tsc\n"
}

/// The beginning of a small file; empty if it cannot be read.
fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let length = file.and_then(|file| rustix::io::read(&file, &mut *buffer));
    &buffer[..length.unwrap_or(0)]
}
