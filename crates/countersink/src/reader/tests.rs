//! Tests with regions made of bytes.

mod bounded;
mod core_files;
mod format;
mod hostile;
#[cfg(all(target_os = "linux", not(countersink_portable)))]
mod linux;
mod races;
mod summing;
