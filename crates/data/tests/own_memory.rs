//! What large and hostile files cost in memory: the peak of live heap bytes, counted by the allocator. One test only in this
//! file, because the count is the whole process's.

#![allow(clippy::unwrap_used)] // clippy knows test functions, but not those that they call

use negscale_data::own::{self, OwnOptions};
use negscale_data::{Items, Splits};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use zip::write::{SimpleFileOptions, ZipWriter};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on unchanged to the system's allocator; counting touches no memory of theirs.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const MIB: usize = 1 << 20;

/// Result of opening, and the most memory that was live on the way.
fn cost(path: &Path, options: &OwnOptions) -> (negscale_data::Result<Splits>, usize) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = own::open(path, options);
    (result, PEAK.load(Relaxed) - before)
}

fn header(shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A file that is mostly a hole: large to look at, small on disk.
fn hollow(path: &Path, head: &[u8], length: u64) {
    let mut file = File::create(path).unwrap();
    file.write_all(head).unwrap();
    file.set_len(head.len() as u64 + length).unwrap();
}

fn deflated(path: &Path, members: &[(&str, &[u8], usize)]) {
    let mut writer = ZipWriter::new(File::create(path).unwrap());
    for (name, head, zeros) in members {
        let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        writer.start_file(*name, options).unwrap();
        writer.write_all(head).unwrap();
        let chunk = vec![0; MIB];
        (0..zeros / MIB).for_each(|_| writer.write_all(&chunk).unwrap());
    }
    writer.finish().unwrap();
}

#[test]
fn large_files_are_not_held_in_memory_and_hostile_ones_cannot_fill_it() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let labels = at("labels.txt");
    std::fs::write(&labels, "0\n1\n").unwrap();
    let beside = OwnOptions { labels: Some(labels), ..Default::default() };

    // 512 MiB of features, mapped; 64 MiB in a deflated archive and 23 MiB of table, spooled to disk.
    let columns = 64 * MIB;
    hollow(&at("large.npy"), &header(&format!("(2, {columns})")), 8 * columns as u64);
    deflated(&at("large.npz"), &[("x.npy", &header(&format!("(2, {})", 8 * MIB)), 64 * MIB)]);
    let mut table = File::create(at("large.csv")).unwrap();
    let rows = format!("{}0\n", "0.25,".repeat(20)).repeat(1000);
    (0..300).for_each(|_| table.write_all(rows.as_bytes()).unwrap());
    for (name, most) in [("large.npy", MIB), ("large.npz", 40 * MIB)] {
        let (splits, peak) = cost(&at(name), &beside);
        let train = splits.unwrap().train;
        assert!(matches!(train.items(), Items::Features(store) if store.len() == 2));
        assert!(peak < most, "{name}: {peak} bytes");
    }
    let (splits, peak) = cost(&at("large.csv"), &OwnOptions::default());
    assert_eq!(splits.unwrap().train.len(), 300_000);
    assert!(peak < 40 * MIB, "large.csv: {peak} bytes");

    // Shapes, headers and archives that claim what is not there.
    hollow(&at("shape.npy"), &header("(1000000000000000000, 1000000000000000000)"), 64);
    hollow(&at("header.npy"), b"\x93NUMPY\x02\x00\xFF\xFF\xFF\x7F", 1 << 31);
    hollow(&at("header.safetensors"), &(1u64 << 60).to_le_bytes(), 64);
    hollow(&at("long.safetensors"), &99_000_000u64.to_le_bytes(), 64);
    deflated(&at("lies.npz"), &[("x.npy", &header("(2, 2)"), 128 * MIB)]);
    deflated(
        &at("large-labels.npz"),
        &[("x.npy", &header("(2, 2)"), 0), ("y.npy", &header("(2, 2)"), 128 * MIB)],
    );
    hollow(&at("footer.parquet"), b"PAR1", 1 << 30);
    let mut open_quote = File::create(at("quote.csv")).unwrap();
    open_quote.write_all(b"1,2,0\n\"").unwrap();
    open_quote.seek(SeekFrom::Start(1 << 30)).unwrap();
    open_quote.write_all(b"x").unwrap();
    std::fs::write(at("commas.csv"), ",".repeat(40 * MIB)).unwrap();
    for name in [
        "shape.npy",
        "header.npy",
        "header.safetensors",
        "long.safetensors",
        "lies.npz",
        "large-labels.npz",
        "footer.parquet",
        "quote.csv",
        "commas.csv",
    ] {
        let options = if name.starts_with("large") { OwnOptions::default() } else { beside.clone() };
        let (result, peak) = cost(&at(name), &options);
        let error = result.map(|splits| splits.train).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        assert!(peak < 100 * MIB, "{name}: {peak} bytes");
    }
}
