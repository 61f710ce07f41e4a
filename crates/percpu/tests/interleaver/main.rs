//! The per-CPU operations on the interleaver: every preemption, migration, signal and kill at every
//! step of the sections that [`countersink_percpu::spec`] describes, on 2 to 4 virtual CPUs.
//!
//! Laws, in each state: what the lanes hold is explained by what returned (`laws.rs`); a sweep's
//! sum lies between the true sums at its begin and end (`sweep.rs`); no guarded add comes after the
//! guard was raised and fenced (`guard.rs`). And no thread can step for ever: restarts are bounded.
//! `mutants.rs` makes each known mistake in turn, and asserts that it is found.
//!
//! A section's commit is its last memory access, its load of the same word one before, also for
//! x86's one `add` to memory: without a lock prefix that is atomic against its own CPU's
//! interrupts, not against a locked add on another CPU, which may come between load and store.
//!
//! Run with `--nocapture` to see how many states each test visits.

mod guard;
mod laws;
mod model;
mod mutants;
mod operation;
mod sweep;

use countersink_percpu::spec::Op;
use model::{Model, Role};

/// Signed values as the bits that lanes hold.
fn bits(value: i64) -> u64 {
    value as u64
}

#[track_caller]
fn holds(model: &Model, name: &str, signals: u8, kills: u8) {
    let report = model.explore(name, signals, kills);
    let report = report.unwrap_or_else(|failure| panic!("{name}: {failure}"));
    assert_eq!(report.stuck_after_kill, 0, "{name}: waits for the dead");
}

/// Two registered threads and one that is not, one operation each, and one in a handler.
fn three_threads(ops: [Op; 4]) -> Model {
    let [a, b, unregistered, handler] = ops;
    let mut model = Model::new(
        2,
        vec![
            Role::Registered(vec![a]),
            Role::Registered(vec![b]),
            Role::Unregistered(vec![unregistered]),
        ],
    );
    model.handler = Some(handler);
    model.max_aborts = 1;
    model
}

#[test]
fn add() {
    let add = |n: u64| [1, 10, 100, 1000].map(|digit: u64| Op::Add(n.wrapping_mul(digit)));
    holds(&three_threads(add(1)), "add", 1, 1);
    // Below zero, as signed counters go.
    holds(&three_threads(add(bits(-1))), "add down", 1, 0);
}

#[test]
fn add_return() {
    let ops = [1, 10, 100, 1000].map(Op::AddReturn);
    holds(&three_threads(ops), "add_return", 1, 1);
}

#[test]
fn compare_exchange() {
    let swap = |old, new| Op::CompareExchange { old, new };
    let race = [swap(0, 1), swap(0, 2), swap(0, 3), swap(0, 4)];
    holds(&three_threads(race), "compare_exchange race", 1, 1);
    let chain = [swap(0, 1), swap(1, 2), swap(2, 3), swap(1, 4)];
    holds(&three_threads(chain), "compare_exchange chain", 1, 1);
}

#[test]
fn exchange() {
    let ops = [1, 2, 3, 4].map(Op::Exchange);
    holds(&three_threads(ops), "exchange", 1, 1);
}

#[test]
fn extremes() {
    let signed = [-3, 4, -5, 6];
    let unsigned = [3, u64::MAX, 5, 2];
    for (name, start, ops) in [
        ("min signed", bits(i64::MAX), signed.map(Op::StoreMinSigned)),
        ("max signed", bits(i64::MIN), signed.map(Op::StoreMaxSigned)),
        ("min unsigned", u64::MAX, unsigned.map(Op::StoreMinUnsigned)),
        ("max unsigned", 0, unsigned.map(Op::StoreMaxUnsigned)),
    ] {
        let mut model = three_threads(ops);
        model.start = [start; 2];
        holds(&model, name, 1, 1);
    }
}

#[test]
fn pairs() {
    let add = [1, 10, 100, 1000].map(|n| Op::AddPair([n, 3 * n]));
    holds(&three_threads(add), "add_pair", 1, 1);
    let swap = |old, new| Op::CompareExchangePair { old, new };
    let chain = [
        swap([0, 0], [1, 5]),
        swap([1, 5], [2, 6]),
        swap([0, 0], [3, 7]),
        swap([1, 5], [4, 8]),
    ];
    holds(&three_threads(chain), "compare_exchange_pair", 1, 1);
}

#[test]
fn different_operations_on_one_word() {
    let ops = [
        Op::CompareExchange { old: 0, new: 7 },
        Op::AddPair([1, 2]),
        Op::Exchange(50),
        Op::AddReturn(300),
    ];
    holds(&three_threads(ops), "mixed", 1, 1);
}

/// Longer programs on more CPUs, with handlers that interrupt handlers.
#[test]
fn more_cpus_and_more_operations() {
    let registered = |ops: [u64; 2]| Role::Registered(ops.map(Op::AddReturn).to_vec());
    for (cpus, signals) in [(1, 2), (2, 1), (4, 0)] {
        let mut model = Model::new(cpus, vec![registered([1, 10]), registered([100, 1000])]);
        model.handler = Some(Op::AddReturn(10_000));
        holds(&model, "two operations each", signals, 0);
    }
    let one = Role::Registered(vec![Op::AddReturn(100)]);
    let mut model = Model::new(3, vec![registered([1, 10]), one]);
    model.handler = Some(Op::AddReturn(10_000));
    holds(&model, "two operations and one", 1, 0);
    let four = [1, 10, 100, 1000].map(|n| Role::Registered(vec![Op::Add(n)]));
    let mut model = Model::new(2, four.to_vec());
    model.max_aborts = 1;
    holds(&model, "four threads", 0, 0);
}

#[test]
fn sweeps_of_words_that_only_go_up() {
    let threads = |first: &[Op]| {
        vec![
            Role::Registered(first.to_vec()),
            Role::Registered(vec![Op::Add(100)]),
            Role::Sweeper(sweep::SUM),
        ]
    };
    let mut model = Model::new(2, threads(&[Op::Add(1), Op::Add(10)]));
    model.handler = Some(Op::Add(1000));
    model.max_aborts = 1;
    holds(&model, "sum", 0, 0);
    model.threads = threads(&[Op::Add(1)]);
    holds(&model, "sum, signalled and killed", 1, 1);
}

#[test]
fn bounds_of_a_gauge() {
    let (up, down) = (Op::AddPair([1, 0]), Op::AddPair([0, 1]));
    let threads = vec![
        Role::Registered(vec![up, down, up]),
        Role::Sweeper(sweep::GAUGE),
    ];
    holds(&Model::new(2, threads), "gauge", 0, 1);
}

/// Guarded adders on two CPUs, and a raiser that may run on a third.
fn guarded(fences: usize) -> Model {
    let threads = vec![
        Role::Registered(vec![Op::AddUnless(1), Op::AddUnless(10)]),
        Role::Registered(vec![Op::AddUnless(100)]),
        Role::Raiser { fences },
    ];
    let mut model = Model::new(3, threads);
    model.max_aborts = 1;
    model
}

#[test]
fn guarded_adds_end_with_the_fences() {
    holds(&guarded(3), "add_unless", 0, 0);
    let mut model = guarded(3);
    model.threads[0] = Role::Registered(vec![Op::AddUnless(1)]);
    model.threads[1] = Role::Unregistered(vec![Op::AddUnless(100)]);
    model.handler = Some(Op::AddUnless(1000));
    holds(&model, "add_unless, one unregistered", 1, 1);
}
