#!/usr/bin/env python3
"""Prints what the Countersink metrics of a process, or of a region's file, hold.

    read_region.py PID | FILE [--json]

Written from docs/region-format.md alone, with Python's standard library, as a start for readers in
other languages. It reads Linux processes and files, not core files.
"""

import argparse
import json
import math
import os
import re
import stat
import struct
import sys

UNIT = 65536  # parts begin at multiples of this; also the bytes of a lane
WORDS = 8192  # words of a lane
ENTRY = 512
SHARED, BIAS, FIRST_CPU = 0, 1, 2  # the lanes
READY = 2  # the state of an entry
TRIES = 100  # of reading a metric that is being reset
WORD = 2**64 - 1

COUNTER, GAUGE, SPAN, HISTOGRAM, BATCH, TREE = 1, 2, 3, 4, 5, 6
KINDS = {COUNTER: "counter", GAUGE: "gauge", SPAN: "span", HISTOGRAM: "histogram", BATCH: "batch", TREE: "tree"}
WORDS_BEFORE_BUCKETS = {COUNTER: 1, GAUGE: 2, SPAN: 16, HISTOGRAM: 2}
MOST_BATCHES = 4095
TREE_WORDS, TREE_SLACK = 20, 18
NO_TELLING = 2**63 - 1  # as a slack
UNITS = {0: "", 1: "bytes", 2: "nanoseconds", 3: "ticks"}
MECHANISMS = {1: "restartable sequences", 2: "locked lanes of CPUs", 3: "locked lanes of threads"}
REASONS = {1: "bad name", 2: "bad labels", 3: "name and labels too long", 4: "defined otherwise before",
           5: "no room for another entry", 6: "no room for its words", 7: "no memory"}

# Where a span's extremes are: a generation, then the value; and which of two is the extreme.
EXTREMES = {"max": (4, max), "min": (6, min), "max_bytes": (8, max), "min_bytes": (10, min)}


class Invalid(Exception):
    """What was read cannot be a region."""


class Region:
    """A region that can be read; every number of it is checked before it is used."""

    def __init__(self, descriptor, path):
        self.descriptor = descriptor
        self.path = path
        self.check_header()

    def read(self, offset, size):
        found = b""
        while len(found) < size:
            more = os.pread(self.descriptor, size - len(found), offset + len(found))
            if not more:
                raise Invalid("it ends too early")
            found += more
        return found

    def u32(self, offset):
        return struct.unpack("=I", self.read(offset, 4))[0]

    def u64(self, offset):
        return struct.unpack("=Q", self.read(offset, 8))[0]

    def text(self, offset, size):
        return self.read(offset, size).split(b"\0")[0].decode(errors="replace")

    def check_header(self):
        def need(holds, what):
            if not holds:
                raise Invalid(what)

        need(self.read(0, 8) == b"CSINKREG", "it is not a region")
        need(self.u32(12) == 0x01020304, "it has another byte order")
        need(self.u32(8) == 1, "it has another version")
        need(self.u32(24) == 1, "it is not ready")
        self.cpus, entries, segments, groups = (self.u32(at) for at in (28, 40, 44, 48))
        need(1 <= self.cpus <= 8192, "lanes")
        need(self.u32(32) == UNIT, "stride")
        need(128 <= entries <= 65536 and entries % 128 == 0, "entries")
        need(1 <= segments <= 256, "segments")
        need(groups >= 512 and groups & (groups - 1) == 0, "groups of the index")
        need(self.u32(52) == ENTRY, "size of an entry")
        self.entries, self.segments = entries, segments
        self.entries_at, self.segments_at, self.segment_size = (self.u64(at) for at in (64, 72, 80))
        need(self.u64(56) == UNIT, "offset of the index")
        need(self.entries_at == UNIT + 128 * groups, "offset of the entries")
        need(self.segments_at == self.entries_at + ENTRY * entries, "offset of the segments")
        need(self.segment_size == ((self.cpus + 2) | 1) * UNIT, "size of a segment")
        size = self.segments_at + segments * self.segment_size
        need(self.u64(16) == size, "size")
        need(os.fstat(self.descriptor).st_size >= size, "it is shorter than it says")

    def info(self):
        library = self.u32(160)
        return {
            "path": self.path,
            "pid": self.u32(120),
            "program": self.text(192, 64),
            "library": "%d.%d.%d" % (library >> 16, library >> 8 & 255, library & 255),
            "mechanism": MECHANISMS.get(self.u32(36), "unknown"),
            "why": self.text(256, 192),
            "hindrance": self.text(448, 128),
            "cpus": self.cpus,
            "ticks_per_second": self.u64(1056),
            "resets": self.u64(1040),
            "refused": sum(struct.unpack("=16Q", self.read(1344, 128))),
            "refusals": [refusal for refusal in map(self.refusal, range(16)) if refusal],
        }

    def refusal(self, number):
        at = 1536 + 64 * number
        state, reason, times = struct.unpack("=IIQ", self.read(at, 16))
        if state != 2:
            return None
        return {"name": self.text(at + 16, 48), "reason": REASONS.get(reason, "unknown"), "times": times}

    def lane(self, entry, lane, first, count):
        """Words of a metric in one lane."""
        at = self.segments_at + entry["segment"] * self.segment_size + lane * UNIT
        return struct.unpack("=%dQ" % count, self.read(at + 8 * (entry["word"] + first), 8 * count))

    def counting_lanes(self):
        return [SHARED] + list(range(FIRST_CPU, FIRST_CPU + self.cpus))

    def metrics(self):
        """All metrics; equal entries are added up."""
        found = {}
        for number in range(min(self.u64(1024), self.entries)):
            for metric in self.metrics_of(number):
                key = tuple(metric[field] for field in ("name", "labels", "kind", "unit", "grouping", "sum_kept"))
                found[key] = merged(found[key], metric) if key in found else metric
        return [found[key] for key in sorted(found)]

    def metrics_of(self, number):
        """The metrics of an entry: one, or several batch counters."""
        at = self.entries_at + ENTRY * number
        life = self.u64(at)
        entry = self.entry(at) if life & 0xFF == READY else None
        if not entry:
            return []
        described = dict(entry, entry=number, generation=life >> 32, extremes={}, torn=False, bound=None)
        if entry["kind"] in (BATCH, TREE):
            found = [dict(described, **one) for one in self.published(entry)]
        else:
            sums, extremes, torn = self.values(entry)
            found = [dict(described, sums=sums, extremes=extremes, torn=torn)]
        after = self.u64(at)
        if after & 0xFF != READY or after >> 32 != life >> 32:
            return []  # it is, or was, another metric
        return found

    def published(self, entry):
        """Sums, estimates and bounds of batch and tree counters."""
        count, slack_at = (1, TREE_SLACK) if entry["kind"] == TREE else (entry["count"], 2 * entry["count"])
        before = self.lane(entry, BIAS, 0, entry["words"])
        lanes = [self.lane(entry, lane, 0, entry["words"]) for lane in self.counting_lanes()]
        after = self.lane(entry, BIAS, 0, entry["words"])
        for index in range(count):
            at = 2 * index
            first, later = (estimated(bias[at], bias[at + 1], bias[slack_at]) for bias in (before, after))
            total = signed(sum(lane[at] for lane in lanes) & WORD)
            # Additions that were seen in part: the next sum that what was published before and after allows.
            total = min(max(total, min(first[1], later[1])), max(first[2], later[2]))
            labels = ",".join(filter(None, [entry["labels"], 'index="%d"' % index])) if count > 1 else entry["labels"]
            yield {"sums": [total & WORD, first[0] & WORD], "bound": first[3], "labels": labels}

    def entry(self, at):
        """What an entry says, or nothing if it cannot be right or is of a later version."""
        fields = struct.unpack("=QIIIIIIIHHHHIQII448s", self.read(at, ENTRY))
        _, kind, unit, segment, word, words, grouping, _, name, group, labels, help_text, *_, text = fields
        power, count = (grouping & 0xFF) - 1, 1
        if kind in (BATCH, TREE):
            power, count = -1, grouping
            if not (1 <= count <= MOST_BATCHES if kind == BATCH else count == 0):
                return None
            needed = 2 + 2 * count if kind == BATCH else TREE_WORDS
        else:
            if kind not in KINDS or power > 7 or power < 0 and kind == HISTOGRAM or power >= 0 and kind < SPAN:
                return None
            needed = WORDS_BEFORE_BUCKETS[kind] + (buckets(power) if power >= 0 else 0)
        if segment >= self.segments or words != needed or word + words > WORDS:
            return None
        if not 1 <= name <= 255 or group > name or name + labels + help_text > len(text):
            return None

        def part(start, size):
            return text[start:start + size].decode(errors="replace")

        return {"kind": kind, "count": count, "unit": unit, "segment": segment, "word": word, "words": words,
                "grouping": power, "sum_kept": kind == HISTOGRAM and bool(grouping & 0x100), "name": part(0, name),
                "group": part(0, group), "labels": part(name, labels), "help": part(name + labels, help_text)}

    def values(self, entry):
        """Sums, extremes, and whether resets kept coming in between."""
        torn = True
        for _ in range(TRIES):
            bias = self.lane(entry, BIAS, 0, entry["words"])
            sums, extremes = self.values_beside(entry, bias)
            torn = self.lane(entry, BIAS, 0, entry["words"]) != bias
            if not torn:
                break
        return sums, extremes, torn

    def values_beside(self, entry, bias):
        if entry["kind"] == GAUGE:
            downs, ups, downs_later = (self.column(entry, bias, word) for word in (1, 0, 1))
            return [ups - downs_later & WORD, ups - downs & WORD], {}
        sums, extremes = bias, {}
        for lane in self.counting_lanes():
            # Generations before values: a value can then be of a later one only if the bias says so.
            generations = self.lane(entry, lane, 0, 12) if entry["kind"] == SPAN else ()
            words = self.lane(entry, lane, 0, entry["words"])
            sums = [a + b & WORD for a, b in zip(sums, words)]
            if generations:
                extremes = outermost(extremes, lane_extremes(generations, words, bias[4]))
        return sums, extremes

    def column(self, entry, bias, word):
        lanes = (self.lane(entry, lane, word, 1)[0] for lane in self.counting_lanes())
        return bias[word] + sum(lanes) & WORD


def signed(word):
    return word - (1 << 64) if word >> 63 else word


def estimated(upper, lower, slack):
    """An estimate, the least and the greatest sum that there may be, and the bound."""
    upper, lower = signed(upper), signed(lower)
    gap = signed(upper - lower & WORD)
    if gap < 0:  # not of one moment
        gap, lower = 0, upper
    if slack == NO_TELLING:
        return lower + gap // 2, -(2**63), 2**63 - 1, None
    return lower + gap // 2, lower - slack, upper + slack, slack + (gap + 1) // 2


def lane_extremes(generations, words, present):
    return {name: words[at + 1] for name, (at, _) in EXTREMES.items() if generations[at] == present != 0}


def outermost(some, others):
    picked = dict(some)
    for name, value in others.items():
        picked[name] = EXTREMES[name][1](some.get(name, value), value)
    return picked


def merged(one, other):
    known = one["bound"] is not None and other["bound"] is not None
    return dict(one, sums=[a + b & WORD for a, b in zip(one["sums"], other["sums"])],
                bound=one["bound"] + other["bound"] if known else None, extremes=outermost(one["extremes"], other["extremes"]), torn=one["torn"] or other["torn"])


def buckets(power):
    return (2 << power) + ((63 - power) << power)


def middle(power, bucket):
    """The middle of a bucket's values."""
    if bucket < 2 << power:
        return bucket
    row, within = divmod(bucket - (2 << power), 1 << power)
    highest = power + 1 + row
    width = 1 << (highest - power)
    return (1 << highest) + within * width + (width - 1) // 2


def histogram(counts, power, total=None, scale=lambda value: value):
    """Count, mean, and quantiles by nearest rank; all values count as the middle of their bucket."""
    used = [(at, n) for at, n in enumerate(counts) if n]
    count = sum(n for _, n in used)
    if total is None:
        total = sum(middle(power, at) * n for at, n in used)
    found = {"count": count & WORD, "mean": scale(total // count) if count else None}
    for name, part in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        rank, below, found[name] = max(1, math.ceil(part * count)), 0, None
        for at, n in used:
            below += n
            if below >= rank:
                found[name] = scale(middle(power, at))
                break
    return dict(found, buckets=used)


def label_values(text):
    """The values of labels by their names."""
    unescaped = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
    pairs = re.findall(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"', text)
    return {name: re.sub(r"\\.", lambda found: unescaped.get(found[0], found[0]), value) for name, value in pairs}


def shown(metric, ticks_per_second):
    """A metric as it is printed."""
    def nanoseconds(ticks):
        return (ticks * 10**9 + ticks_per_second // 2) // ticks_per_second if ticks_per_second else 0

    sums, kind = metric["sums"], metric["kind"]
    if kind == COUNTER:
        value = {"value": sums[0]}
    elif kind == GAUGE:
        value = {"low": signed(sums[0]), "high": signed(sums[1])}
    elif kind in (BATCH, TREE):
        value = {"value": signed(sums[0]), "estimate": signed(sums[1]), "bound": metric["bound"]}
    elif kind == HISTOGRAM:
        total = sums[0] if metric["sum_kept"] else None
        value = dict(histogram(sums[2:], metric["grouping"], total), sum=total)
    else:
        extremes = {name: metric["extremes"].get(name) for name in EXTREMES}
        times = {name: None if extremes[name] is None else nanoseconds(extremes[name]) for name in ("min", "max")}
        value = {"events": sums[0], "time_ns": nanoseconds(sums[1]), "min_ns": times["min"], "max_ns": times["max"],
                 "byte_events": sums[2], "bytes": sums[3], "min_bytes": extremes["min_bytes"],
                 "max_bytes": extremes["max_bytes"], "migrated": sums[12], "skipped": sums[13], "invalid": sums[14]}
        if metric["grouping"] >= 0:
            value["times_ns"] = histogram(sums[16:], metric["grouping"], scale=nanoseconds)
    described = {name: metric[name] for name in ("name", "group", "labels", "help", "entry", "generation", "torn")}
    unit = "nanoseconds" if kind == SPAN else UNITS.get(metric["unit"], "unknown")
    return dict(described, label_values=label_values(metric["labels"]), kind=KINDS[kind], unit=unit, value=value)


def opened(path):
    """A descriptor for reading a regular file, or nothing: opening anything else may hang."""
    handle = os.open(path, os.O_PATH)
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            return os.open("/proc/self/fd/%d" % handle, os.O_RDONLY | os.O_NONBLOCK)
        return None
    finally:
        os.close(handle)


def paths_of_process(pid):
    """Descriptors, and mappings, which are there after a descriptor was closed."""
    descriptors, mappings = "/proc/%d/fd" % pid, "/proc/%d/map_files" % pid
    paths = [os.path.join(descriptors, name) for name in os.listdir(descriptors)]
    try:
        paths += [os.path.join(mappings, name) for name in os.listdir(mappings)]
    except OSError:
        pass  # it takes more rights to see mappings
    for path in paths:
        try:
            if os.readlink(path) == "/memfd:countersink (deleted)":
                yield path
        except OSError:
            pass  # it was closed meanwhile, or is not ours to see


def regions_of_process(pid):
    own = os.memfd_create("read_region")
    device, seen = os.fstat(own).st_dev, set()
    os.close(own)
    for path in paths_of_process(pid):
        try:
            descriptor = opened(path)
        except OSError:
            continue
        # Any file can have that name; only a memfd is on the device of memfds.
        if descriptor is not None and os.fstat(descriptor).st_dev == device:
            inode = os.fstat(descriptor).st_ino
            if inode not in seen:
                seen.add(inode)
                try:
                    yield Region(descriptor, path)
                except Invalid as error:
                    print("%s: %s" % (path, error), file=sys.stderr)


def regions(target):
    if target.isdigit():
        found = list(regions_of_process(int(target)))
        if not found:
            raise Invalid("process %s has no region" % target)
        return found
    descriptor = opened(target)
    if descriptor is None:
        raise Invalid("it is not a regular file")
    return [Region(descriptor, target)]


def printable(text):
    return "".join(c if c.isprintable() else "\\u%04x" % ord(c) for c in text)


def print_table(region):
    print(printable("{program} (pid {pid}): {mechanism}, {refused} refused".format(**region)))
    for metric in region["metrics"]:
        labels = "{%s}" % metric["labels"] if metric["labels"] else ""
        values = ((name, value) for name, value in metric["value"].items() if name != "buckets" and value is not None)
        text = "  ".join("%s %s" % (name, summary(value)) for name, value in values)
        torn = "  TORN" if metric["torn"] else ""
        print(printable("%-40s %-10s %s %s%s" % (metric["name"] + labels, metric["kind"], text, metric["unit"], torn)))


def summary(value):
    if isinstance(value, dict):
        return "/".join(str(value[name]) for name in ("p50", "p90", "p99"))
    return str(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", metavar="PID|FILE")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    try:
        found = []
        for region in regions(arguments.target):
            metrics = region.metrics()
            info = region.info()  # after the metrics: spans that they have know their clock's rate
            found.append(dict(info, metrics=[shown(metric, info["ticks_per_second"]) for metric in metrics]))
    except (Invalid, OSError) as error:
        sys.exit("%s: %s" % (arguments.target, error))
    if arguments.json:
        print(json.dumps({"regions": found}))
    else:
        for region in found:
            print_table(region)


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(0)  # whoever reads has had enough
