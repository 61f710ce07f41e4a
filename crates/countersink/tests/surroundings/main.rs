//! Hostile and odd surroundings. Whatever is refused, full, planted or closed: the program goes on, its
//! own counts are exact, and the library says where it counts and why.
//!
//! Each case runs in a process of its own; see [`child`].
#![cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    not(countersink_portable)
))]

mod child;
mod clock;
mod core_file;
mod directory;
mod forge;
mod fork;
mod handler;
mod join;
mod limits;
mod mounts;
mod neighbours;
mod refusals;
mod sandbox;
mod work;

/// What child processes can do, by name.
const ACTS: &[&[child::Act]] = &[
    clock::ACTS,
    core_file::ACTS,
    directory::ACTS,
    fork::ACTS,
    handler::ACTS,
    join::ACTS,
    limits::ACTS,
    mounts::ACTS,
    neighbours::ACTS,
    refusals::ACTS,
    sandbox::ACTS,
];

/// Where children begin; in the test program itself there is nothing to do.
#[test]
fn act() {
    child::act(ACTS);
}
