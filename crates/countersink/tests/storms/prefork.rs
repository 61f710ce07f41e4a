//! A server of workers that are forked, killed and replaced.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use countersink::{Counter, Family, Gauge, Span};

use crate::common::child::alone;
use crate::common::cpus::{pause, wait_until};
use crate::common::fork::{Child, fork};
use crate::common::log::{self, Line, assert_in_bracket, is_in_bracket, total};
use crate::common::random::Random;
use crate::common::raw::Raw;
use crate::common::read;

const WORKERS: usize = 8;
const KILLS: u64 = 200;
const SEED: u64 = 0x9ef0_0001;
/// After so many, a worker lets others run: there are more of them than CPUs.
const ROUNDS: u64 = 500;

static REQUESTS: Counter = Counter::new("prefork_requests");
static OPEN: Gauge = Gauge::new("prefork_open");
static ANSWER: Span = Span::new("prefork_answer");
static BY_WORKER: Family<Counter> = Family::new(Counter::new("prefork_by_worker"), ["worker"]);
const NAMES: [&str; WORKERS] = ["0", "1", "2", "3", "4", "5", "6", "7"];

/// Words of a worker's log.
const REQUEST: usize = 0;
const UP: usize = 1;
const DOWN: usize = 2;
const ANSWERED: usize = 3;
const OWN: usize = 4;
const WRONG: usize = 5;
const STARTS: usize = 6;

/// What all workers share beside the region.
#[derive(Clone, Copy, Debug)]
struct Shared {
    logs: &'static [Line],
    stop: &'static AtomicU64,
    /// A counter as one must not write it.
    wrong: &'static AtomicU64,
}

impl Shared {
    fn work(&self, worker: usize) {
        let log = &self.logs[worker];
        let own = BY_WORKER.with([NAMES[worker]]);
        log.add(STARTS, 1);
        while self.stop.load(Relaxed) == 0 {
            REQUESTS.inc();
            log.add(REQUEST, 1);
            OPEN.add(3);
            log.add(UP, 1);
            ANSWER.start().stop();
            log.add(ANSWERED, 1);
            own.inc();
            log.add(OWN, 1);
            OPEN.sub(2);
            log.add(DOWN, 1);
            let wrong = self.wrong.load(Relaxed);
            if log.get(REQUEST).is_multiple_of(ROUNDS) {
                pause();
            }
            self.wrong.store(wrong + 1, Relaxed);
            log.add(WRONG, 1);
        }
    }

    /// Kills workers and replaces them; how often each one was killed.
    fn kill(&self, workers: &mut [Option<Child>]) -> [u64; WORKERS] {
        let mut random = Random(SEED);
        let mut kills = [0; WORKERS];
        for _ in 0..KILLS {
            // At whatever the workers are just doing, starting to work included.
            let until = total(self.logs, REQUEST) + random.below(40_000);
            wait_until(|| total(self.logs, REQUEST) >= until);
            let victim = random.below(WORKERS as u64) as usize;
            if let Some(worker) = workers[victim].take() {
                worker.kill();
                kills[victim] += 1;
            }
            workers[victim] = Some(fork(|| self.work(victim)));
        }
        kills
    }
}

fn serve() {
    let [words] = log::shared(1) else {
        panic!("one line");
    };
    let shared = Shared {
        logs: log::shared(WORKERS),
        stop: words.word(0),
        wrong: words.word(1),
    };
    // The workers inherit the region; what they register themselves is registered by many.
    REQUESTS.add(0);
    let mut workers: Vec<_> = (0..WORKERS)
        .map(|worker| Some(fork(|| shared.work(worker))))
        .collect();
    wait_until(|| shared.logs.iter().all(|log| log.get(STARTS) > 0));
    wait_until(|| total(shared.logs, REQUEST) >= 1000);
    let used = Raw::own().entries_used();
    let kills = shared.kill(&mut workers);
    shared.stop.store(1, Relaxed);
    for worker in workers.into_iter().flatten() {
        worker.wait_well();
    }
    assert_eq!(kills.iter().sum::<u64>(), KILLS);
    check(&shared, &kills);
    assert_eq!(Raw::own().entries_used(), used, "entries");
}

fn check(shared: &Shared, kills: &[u64; WORKERS]) {
    let logged = |word| total(shared.logs, word);
    let starts = logged(STARTS);
    assert!(starts > WORKERS as u64 && starts <= WORKERS as u64 + KILLS);
    let snapshot = read::snapshot();
    let requests = read::counter(&snapshot, "prefork_requests");
    assert_eq!(requests, REQUESTS.sum());
    assert_in_bracket("requests", requests, logged(REQUEST), KILLS);

    let (ups, downs) = OPEN.ups_and_downs();
    assert!(ups.is_multiple_of(3) && downs.is_multiple_of(2));
    assert_in_bracket("ups", ups / 3, logged(UP), KILLS);
    assert_in_bracket("downs", downs / 2, logged(DOWN), KILLS);
    let open = read::gauge(&snapshot, "prefork_open");
    assert_eq!(open, ups as i64 - downs as i64);

    let answers = read::span(&snapshot, "prefork_answer");
    assert_in_bracket("answers", answers.events, logged(ANSWERED), KILLS);
    assert_eq!(
        (answers.skipped, answers.invalid),
        (0, 0),
        "nothing is lost"
    );

    for (worker, name) in NAMES.iter().enumerate() {
        let member = read::member(&snapshot, "prefork_by_worker", name);
        let count = read::count_of(member);
        assert_in_bracket(name, count, shared.logs[worker].get(OWN), kills[worker]);
    }
    let wrong = shared.wrong.load(Relaxed);
    println!(
        "seed {SEED:#x}: {requests} requests, {starts} starts, {KILLS} kills; load and store: {wrong} of {}",
        logged(WRONG)
    );
    assert!(!is_in_bracket(wrong, logged(WRONG), KILLS), "not a storm");
}

#[test]
fn totals_stay_exact_while_workers_are_killed() {
    alone("prefork::totals_stay_exact_while_workers_are_killed", serve);
}
