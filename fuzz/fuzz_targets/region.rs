//! Any bytes as a region. What comes behind the header is beyond an input's length, so it is missing;
//! `mutated` is the target for that.
#![no_main]

use countersink_fuzz::look_at_bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| look_at_bytes(bytes.to_vec()));
