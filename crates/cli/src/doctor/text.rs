//! The facts for people.

use std::fmt::Display;

use super::facts::Facts;
use crate::output::wrap;

/// Sections of aligned lines.
pub(super) fn render(facts: &Facts) -> String {
    let mut page = Page::default();
    counting(&mut page, facts);
    machine(&mut page, facts);
    clocks(&mut page, facts);
    memory(&mut page, facts);
    page.section("Advice");
    if facts.advice.is_empty() {
        page.text("Nothing is missing for counting.");
    }
    for advice in &facts.advice {
        page.text(advice);
    }
    page.0
}

fn counting(page: &mut Page, facts: &Facts) {
    let mechanism = &facts.mechanism;
    page.section("Counting");
    page.line("mechanism", &mechanism.sentence);
    let registrar = match mechanism.registrar {
        Some("libc") => "the C library",
        Some(_) => "this library, each thread at its first count",
        None => "nobody",
    };
    page.line("registered by", registrar);
    let segment = mechanism.segment_bytes.map_or_else(
        || "more address space than there is".to_owned(),
        |bytes| format!("{} KiB of address space", bytes / 1024),
    );
    page.line(
        "lanes",
        format!("{} CPUs; a segment takes {segment}", mechanism.cpu_lanes),
    );
    let region = &facts.region;
    let why = match region.hindrance.as_str() {
        "" => String::new(),
        hindrance => format!(": {hindrance}"),
    };
    page.line(
        "metrics in",
        format!("{}, room for {}{why}", region.place, region.metrics),
    );
    page.line(
        "spans by",
        match region.span_clock {
            "monotonic" => "the monotonic clock",
            _ => "the cycle counter",
        },
    );
    let rseq = &facts.rseq;
    page.line(
        "rseq call",
        known(facts, "rseq.system_call", rseq.system_call.as_ref()),
    );
    page.line(
        "rseq features",
        format!(
            "{} bytes, aligned to {}; the C library's __rseq_size is {}",
            known(facts, "rseq.feature_size_bytes", rseq.feature_size_bytes),
            known(facts, "rseq.alignment_bytes", rseq.alignment_bytes),
            known(facts, "rseq.libc_size_bytes", rseq.libc_size_bytes),
        ),
    );
    let commands = match facts.membarrier.commands.as_slice() {
        [] => "none".to_owned(),
        commands => commands.join(", "),
    };
    page.line("membarrier", commands);
    page.line("fence", &facts.membarrier.fence);
}

fn machine(page: &mut Page, facts: &Facts) {
    let machine = &facts.machine;
    page.section("Machine");
    page.line(
        "CPU",
        known(facts, "machine.cpu_model", machine.cpu_model.as_ref()),
    );
    for flag in &facts.cpu_flags {
        let present = if flag.present { "yes" } else { "no" };
        page.line(flag.name, format!("{present}: {}", flag.matters));
    }
    let cpus = |fact, list: &Option<String>| known(facts, fact, list.as_deref().map(spaced));
    page.line(
        "CPUs",
        format!(
            "possible {}, online {}, allowed {}",
            cpus("machine.cpus_possible", &machine.cpus_possible),
            cpus("machine.cpus_online", &machine.cpus_online),
            cpus("machine.cpus_allowed", &machine.cpus_allowed),
        ),
    );
    let siblings = match machine.threads_per_core {
        Some(1) => "none: each allowed CPU has a core of its own".to_owned(),
        Some(threads) => format!("{threads} allowed CPUs to a core"),
        None => known::<&str>(facts, "machine.threads_per_core", None),
    };
    page.line("SMT siblings", siblings);
    caches(page, facts);
    page.line(
        "kernel",
        format!(
            "{} {}",
            known(facts, "machine.os", machine.os.as_ref()),
            known(facts, "machine.kernel", machine.kernel.as_ref())
        ),
    );
    page.line(
        "hypervisor",
        known(facts, "machine.hypervisor", machine.hypervisor.as_ref()),
    );
    page.line(
        "governor",
        known(facts, "machine.governor", machine.governor.as_ref()),
    );
}

/// The caches of CPU 0.
fn caches(page: &mut Page, facts: &Facts) {
    let machine = &facts.machine;
    if machine.caches.is_empty() {
        page.line("caches", known::<&str>(facts, "machine.caches", None));
    }
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    for cache in &machine.caches {
        let level = or_unknown(cache.level.map(|level| level.to_string()));
        let kind = cache.kind.as_deref().unwrap_or("").to_lowercase();
        let size = or_unknown(cache.size.clone());
        let line = or_unknown(cache.line.map(|bytes| bytes.to_string()));
        let cpus = or_unknown(cache.cpus.as_deref().map(spaced));
        page.line(
            &format!("L{level} {kind}"),
            format!("{size}, lines of {line} bytes, shared by CPUs {cpus}"),
        );
    }
}

fn clocks(page: &mut Page, facts: &Facts) {
    page.section("Clocks and counters");
    let source = facts.machine.clocksource.as_ref();
    page.line("clock source", known(facts, "machine.clocksource", source));
    page.line("bench measures with", "the system's monotonic clock");
    let usable = if facts.clock.tsc_usable {
        "usable"
    } else {
        "not usable"
    };
    page.line("TSC", format!("{usable}: {}", facts.clock.reason));
    page.line(
        "perf cycles",
        known(facts, "perf.cycles", facts.perf.cycles.as_ref()),
    );
    page.line(
        "perf instr.",
        known(facts, "perf.instructions", facts.perf.instructions.as_ref()),
    );
    page.line(
        "perf paranoid",
        known(facts, "perf.paranoid", facts.perf.paranoid),
    );
}

fn memory(page: &mut Page, facts: &Facts) {
    let memory = &facts.memory;
    page.section("Memory");
    let page_size = facts
        .machine
        .page_size
        .map(|bytes| format!("{bytes} bytes"));
    page.line("page", known(facts, "machine.page_size", page_size));
    let sizes: Vec<String> = memory
        .hugetlb_kib
        .iter()
        .map(|kib| format!("{kib} KiB"))
        .collect();
    let sizes = (!sizes.is_empty()).then(|| sizes.join(", "));
    page.line(
        "huge pages",
        format!(
            "transparent: {}; explicit: {}",
            known(
                facts,
                "machine.transparent_hugepages",
                facts.machine.transparent_hugepages.as_ref()
            ),
            known(facts, "memory.hugetlb_kib", sizes),
        ),
    );
    let limit = memory
        .memlock_limit_bytes
        .map(|bytes| format!("{bytes} bytes"));
    let without = if cfg!(target_os = "linux") {
        "any amount"
    } else {
        "no limit known"
    };
    page.line("may be locked", limit.unwrap_or_else(|| without.to_owned()));
    page.line(
        "overcommit",
        known(facts, "memory.overcommit", memory.overcommit),
    );
    page.line("memfd", known(facts, "memory.memfd", memory.memfd.as_ref()));
}

/// The value of a fact, or why it is not known.
fn known<T: Display>(facts: &Facts, fact: &str, value: Option<T>) -> String {
    match (value, facts.unknown.get(fact)) {
        (Some(value), _) => value.to_string(),
        (None, Some(reason)) => format!("unknown ({reason})"),
        (None, None) => "unknown".to_owned(),
    }
}

/// A list of CPUs that can be broken into lines.
fn spaced(list: &str) -> String {
    list.replace(',', ", ")
}

/// Text, as it grows.
#[derive(Default)]
struct Page(String);

/// Where values start.
const INDENT: usize = 16;

impl Page {
    fn section(&mut self, title: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0 += title;
        self.0.push('\n');
    }

    fn line(&mut self, name: &str, value: impl Display) {
        let wrapped = wrap(&value.to_string(), INDENT + 2);
        let value = wrapped.trim_start();
        self.0 += &format!("  {name:<INDENT$}{value}");
    }

    /// A paragraph.
    fn text(&mut self, text: &str) {
        self.0 += &wrap(text, 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPUs that alternate between two nodes: nothing that a range could shorten.
    fn every_other_of(cpus: usize) -> String {
        let list: Vec<String> = (0..cpus).step_by(2).map(|cpu| cpu.to_string()).collect();
        list.join(",")
    }

    #[test]
    fn large_machines_and_long_reasons_fit_a_terminal() {
        let mut facts = Facts::gather();
        let list = every_other_of(1024);
        facts.machine.cpus_allowed = Some(list.clone());
        for cache in &mut facts.machine.caches {
            cache.cpus = Some(list.clone());
        }
        facts.mechanism.sentence = "a mechanism, because of a reason. ".repeat(9);
        facts.machine.governor = None;
        let reason = "there is no such file ".repeat(9);
        facts.unknown.insert("machine.governor", reason);
        let text = render(&facts);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|width| width <= 100), "{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(
            words.contains(&"1020,") && words.contains(&"1022"),
            "{text}"
        );
    }

    #[test]
    fn what_is_unknown_says_why() {
        let mut facts = Facts::gather();
        facts.machine.clocksource = None;
        facts.memory.hugetlb_kib = Vec::new();
        for fact in ["machine.clocksource", "memory.hugetlb_kib"] {
            facts.unknown.insert(fact, "/sys is not mounted".to_owned());
        }
        let text = render(&facts);
        assert!(
            text.contains("clock source    unknown (/sys is not mounted)"),
            "{text}"
        );
        assert!(
            text.contains("explicit: unknown (/sys is not mounted)"),
            "{text}"
        );
    }
}
