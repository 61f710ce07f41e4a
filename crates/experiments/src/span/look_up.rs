//! The seed's measurement: each look-up of a page, as `kfree` does it, in a span of its own.

use std::sync::OnceLock;

use countersink::Span;
use countersink_harness::variant::{Point, Variant, Worker};

use super::instructions::{launder, observe};
use super::readings::{GROUPING, Readings, find};
use super::tables::{Empty, MEMORY, Memmap, PAGE, PAGE_OFFSET, Sparsemem, Table, View};

/// What the span has around it in these points.
pub const LOOK_UP: &str = "virt_to_page";
/// The same and the first use of what was found.
pub const FIRST_USE: &str = "virt_to_page+use";
/// All in the first-level cache.
pub const HOT: &str = "hot";
/// What is looked at was moved out of the caches before each look-up.
pub const COLD: &str = "cold";

/// The memory that hot look-ups are spread over: the page structures fill 16 cache lines.
const HOT_MEMORY: usize = 16 * PAGE;
/// From one object to the next, in bytes: an odd number of pages and a bit, so all pages come, far from
/// each other.
const STRIDE: usize = 25_717 * PAGE + 192;

/// The seed's site. All variants count here, one after the other.
static KFREE_VIRT_TO_PAGE: Span = Span::new("kfree_virt_to_page")
    .with_histogram(GROUPING)
    .help("Look-ups of the page of an object");

/// The point with each table, and with none.
pub(super) fn point<const IS_COLD: bool, const IS_USED: bool>(readings: &Readings) -> Point<'_> {
    let op = if IS_USED { FIRST_USE } else { LOOK_UP };
    let pattern = if IS_COLD { COLD } else { HOT };
    let point = Point::new(op, pattern, 1)
        // Readings go by the order of the samples.
        .noted()
        .with(LookUps::<Memmap, IS_COLD, IS_USED>::new(readings))
        .with(LookUps::<Sparsemem, IS_COLD, IS_USED>::new(readings));
    if IS_USED {
        return point;
    }
    point.with(LookUps::<Empty, IS_COLD, IS_USED>::new(readings))
}

struct LookUps<'a, T, const IS_COLD: bool, const IS_USED: bool> {
    table: OnceLock<Option<T>>,
    readings: &'a Readings,
}

impl<'a, T: Table, const IS_COLD: bool, const IS_USED: bool> LookUps<'a, T, IS_COLD, IS_USED> {
    const KEY: (&'static str, &'static str, &'static str) = (
        T::NAME,
        if IS_USED { FIRST_USE } else { LOOK_UP },
        if IS_COLD { COLD } else { HOT },
    );

    fn new(readings: &'a Readings) -> Self {
        LookUps {
            table: OnceLock::new(),
            readings,
        }
    }
}

impl<T: Table, const IS_COLD: bool, const IS_USED: bool> Variant
    for LookUps<'_, T, IS_COLD, IS_USED>
{
    fn name(&self) -> &str {
        T::NAME
    }

    fn worker(&self, _thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        Box::new(Looking {
            table: self.table.get_or_init(T::new).as_ref(),
            variant: self,
            position: 0,
            slabs: 0,
        })
    }

    fn check(&self, operations: &[u64]) -> Result<(), String> {
        let operations: u64 = operations.iter().sum();
        let readings = self.readings.get();
        let recorded = find(&readings, Self::KEY).map_or(0, |reading| reading.recorded());
        if recorded == operations {
            Ok(())
        } else {
            Err(format!("{operations} look-ups, the span has {recorded}"))
        }
    }
}

struct Looking<'a, T: Table, const IS_COLD: bool, const IS_USED: bool> {
    table: Option<&'a T>,
    variant: &'a LookUps<'a, T, IS_COLD, IS_USED>,
    position: usize,
    slabs: usize,
}

impl<T: Table, const IS_COLD: bool, const IS_USED: bool> Worker
    for Looking<'_, T, IS_COLD, IS_USED>
{
    fn warm(&mut self) {
        let Some(table) = self.table.map(T::view) else {
            return;
        };
        for position in (0..HOT_MEMORY).step_by(PAGE) {
            self.slabs ^= table.virt_to_page(PAGE_OFFSET + position).slab();
        }
    }

    fn run(&mut self, operations: u64) {
        // Without a table nothing is counted, and the check says how much is missing.
        let Some(table) = self.table.map(T::view) else {
            return;
        };
        let memory = if IS_COLD { MEMORY } else { HOT_MEMORY };
        let (mut position, mut slabs) = (self.position, self.slabs);
        for _ in 0..operations {
            let address = PAGE_OFFSET + position;
            position = (position + STRIDE) % memory;
            if IS_COLD {
                table.evict(address);
            }
            let running = KFREE_VIRT_TO_PAGE.start();
            let page = table.virt_to_page(launder(address));
            if IS_USED {
                observe(page.slab());
            } else {
                observe(std::ptr::from_ref(page).addr());
            }
            running.stop();
            // kfree goes on with what it looked up.
            slabs ^= page.slab();
        }
        (self.position, self.slabs) = (position, std::hint::black_box(slabs));
    }
}

/// A sample ends here, and with it what the span has of it.
impl<T: Table, const IS_COLD: bool, const IS_USED: bool> Drop for Looking<'_, T, IS_COLD, IS_USED> {
    fn drop(&mut self) {
        let key = LookUps::<T, IS_COLD, IS_USED>::KEY;
        self.variant.readings.push(key, KFREE_VIRT_TO_PAGE.take());
    }
}
