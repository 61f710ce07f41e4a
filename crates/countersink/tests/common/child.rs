//! Tests that need a process of their own: each process has one region, and one clock.
//!
//! The test program executes itself again, with only that test selected and a mark in the
//! environment; the test finds the mark and does its work.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::process::Command;

/// Names the test in a child's environment.
pub(crate) const MARK: &str = "COUNTERSINK_TEST_CHILD";
/// After so many seconds a process is taken to hang. Nothing here takes a tenth of it.
const MOST_SECONDS: u32 = 300;

/// Runs the body of a test in a process of its own. `test` is the test's full name.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    alone_with(test, &[], body);
}

/// The same, with variables in the environment.
pub(crate) fn alone_with(test: &str, variables: &[(&str, &OsStr)], body: impl FnOnce()) {
    if std::env::var_os(MARK).is_some_and(|mark| mark == test) {
        end_if_it_hangs();
        return body();
    }
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["--exact", test, "--nocapture", "--include-ignored"]);
    command.env_remove("COUNTERSINK_DIR");
    command.env_remove("COUNTERSINK_REGION");
    command.env(MARK, test);
    command.envs(variables.iter().copied());
    let output = command.output().expect("the test program starts again");
    let out = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {out}{error}", output.status);
    assert!(out.contains("1 passed"), "no such test: {out}{error}");
    println!("{out}{error}");
}

/// A deadlock ends the process instead of the patience of whoever runs the tests.
pub(crate) fn end_if_it_hangs() {
    // SAFETY: no preconditions. Nobody handles this signal.
    unsafe { libc::alarm(MOST_SECONDS) };
}
