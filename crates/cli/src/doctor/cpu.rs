//! What the CPU says of itself.

use super::facts::{Clock, Flag};

/// The properties that matter here.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) fn flags() -> Vec<Flag> {
    let cpuid = raw_cpuid::CpuId::new();
    let features = cpuid.get_feature_info();
    let extended = cpuid.get_extended_processor_and_feature_identifiers();
    let feature = |ask: fn(&raw_cpuid::FeatureInfo) -> bool| features.as_ref().is_some_and(ask);
    vec![
        Flag {
            name: "invariant_tsc",
            present: invariant_tsc(),
            matters: "the time stamp counter runs at one rate, asleep or not",
        },
        Flag {
            name: "rdtscp",
            present: extended.is_some_and(|extended| extended.has_rdtscp()),
            matters: "time and CPU are read together",
        },
        Flag {
            name: "cmpxchg16b",
            present: feature(raw_cpuid::FeatureInfo::has_cmpxchg16b),
            matters: "pairs of words can be changed with a lock",
        },
        Flag {
            name: "avx",
            present: feature(raw_cpuid::FeatureInfo::has_avx),
            matters: "16 aligned bytes are loaded and stored at once, as seen by other CPUs",
        },
    ]
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn invariant_tsc() -> bool {
    let power = raw_cpuid::CpuId::new().get_advanced_power_mgmt_info();
    power.is_some_and(|power| power.has_invariant_tsc())
}

/// The properties that matter here.
#[cfg(target_arch = "aarch64")]
pub(super) fn flags() -> Vec<Flag> {
    let capabilities = super::os::hardware_capabilities();
    vec![
        Flag {
            name: "lse",
            present: capabilities & 1 << 8 != 0,
            matters: "atomic instructions; without them, loops of conditional stores",
        },
        Flag {
            name: "lse2",
            present: capabilities & 1 << 25 != 0,
            matters: "16 aligned bytes are loaded and stored at once, as seen by other CPUs",
        },
    ]
}

/// The properties that matter here: none are known.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn flags() -> Vec<Flag> {
    Vec::new()
}

/// Whether the time stamp counter can be used, and why.
pub(super) fn clock(source: Option<&str>) -> Clock {
    let invariant = has_invariant_tsc();
    let reason = match (source, invariant) {
        (_, None) => "this architecture has no time stamp counter".to_owned(),
        (Some("tsc"), Some(true)) => {
            "it is invariant, and the kernel uses it, which checks that CPUs agree".to_owned()
        }
        (_, Some(false)) => "it is not invariant".to_owned(),
        (Some(other), Some(true)) => format!("the kernel's clock source is {other}"),
        (None, Some(true)) => "the kernel does not tell its clock source".to_owned(),
    };
    Clock {
        tsc_usable: source == Some("tsc") && invariant == Some(true),
        reason,
    }
}

fn has_invariant_tsc() -> Option<bool> {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return Some(invariant_tsc());
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    return None;
}

#[cfg(all(test, any(target_arch = "x86", target_arch = "x86_64")))]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_usable_only_if_the_kernel_uses_it() {
        assert!(!clock(Some("kvm-clock")).tsc_usable);
        assert!(!clock(None).tsc_usable);
        assert_eq!(clock(Some("tsc")).tsc_usable, invariant_tsc());
    }
}
