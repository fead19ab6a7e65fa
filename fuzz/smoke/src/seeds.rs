//! Good inputs of every target: files of the tests where there are any, else made here.

use crate::made;
use image::{DynamicImage, ImageFormat, RgbImage};
use std::io::Cursor;
use std::path::Path;

/// Files of the repository whose names end so, in order of their names.
fn files(folder: &str, end: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(end));
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let pixels =
        RgbImage::from_fn(width, height, |x, y| image::Rgb([(9 * x) as u8, (x * y) as u8, (7 * y) as u8]));
    let mut out = Cursor::new(Vec::new());
    // A picture in memory, in a format that takes RGB, cannot fail; if it did, the empty seed would be refused.
    let _ = DynamicImage::from(pixels).write_to(&mut out, format);
    out.into_inner()
}

/// Two pictures of 4 x 3 and their labels as IDX files.
fn idx() -> Vec<u8> {
    let pictures = [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4][..], &[7; 24]].concat();
    let labels = [0, 0, 8, 1, 0, 0, 0, 2, 3, 9];
    [&(pictures.len() as u16).to_le_bytes()[..], &pictures, &labels].concat()
}

/// Two pictures of packed CIFAR-100: their number, two bytes of labels for each, a strip with its length.
fn strips() -> Vec<u8> {
    let strip = picture(32, 64, ImageFormat::WebP);
    [&[2, 1, 1, 19, 99][..], &(strip.len() as u32).to_le_bytes(), &strip].concat()
}

fn texts(all: &[&str]) -> Vec<Vec<u8>> {
    all.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Two parts, with the length of the first before them.
fn parts(first: &[u8], second: &[u8]) -> Vec<u8> {
    [&(first.len() as u16).to_le_bytes()[..], first, second].concat()
}

/// With a byte before each, which says what is expected.
fn with(byte: u8, files: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    files.into_iter().map(|file| [&[byte][..], &file].concat()).collect()
}

/// The seeds of a target; at least one.
pub fn of(target: &str) -> Vec<Vec<u8>> {
    let fixtures = "crates/data/tests/fixtures";
    match target {
        "animal" => vec![[&[0, 0, 0, 1, 0, 0, 0, 9][..], &[5; 3 * 64 * 64]].concat()],
        "audit_list" => texts(&[
            "index,path,given,suggested,score,clean_probability,suggested_probability,tree_distance,flag\n\
             2,c,dog,cat,0.9,0.1,0.8,2,1\n0,a,cat,dog,0.7,0.2,0.7,2,1\n1,b,cat,'=cmd,0.1,0.9,0.1,,0\n",
        ]),
        "audit_model" => made::models(),
        "cifar" => vec![[&[0, 9][..], &[5; 3072]].concat(), [&[1, 19, 99][..], &[5; 3072]].concat()],
        "idx" => vec![idx()],
        "labels" => {
            texts(&["0\n1\n2\n", "index,label\n0,cat\n1,\"a dog\"\n", "path;label\na.png;x\nb.png;y\n"])
        }
        "ledger" => made::ledgers(),
        "metadata_csv" => texts(&["file_name,label\na.png,cat\nb/c.jpg,\"dog, small\"\n"]),
        "metadata_jsonl" => texts(&[
            "{\"file_name\": \"a.png\", \"label\": \"cat\"}\n{\"file_name\": \"b.png\", \"label\": 1}\n",
        ]),
        "noise" => texts(&[
            "0\n1\n1\n",
            "{\"format\": \"negscale-noise-1\", \"spec\": \"sym:0.5\", \"seed\": 1, \"labels\": [0, 1, 1]}",
        ]),
        "npy" => files(fixtures, ".npy"),
        "npz" => files(fixtures, ".npz"),
        "parquet" => files("crates/data/tests/fixtures/hf", ".parquet"),
        "picture" => [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP]
            .map(|format| picture(24, 17, format))
            .into(),
        "predictions" => [
            with(0, files(fixtures, ".npy")),
            with(3, files("crates/data/tests/fixtures/hf", ".parquet")),
            with(1 | 4 | 8, texts(&["cat,dog\n0.25,0.75\n1,0\n0.5,0.5\n", "index,dog,cat\n2,0.25,0.75\n0,1,0\n1,0.5,0.5\n"])),
            with(2 | 16, texts(&["id\tcat\tdog\nb\t0.25\t0.75\na\t1\t0\nc\t0.5\t0.5\n"])),
        ]
        .concat(),
        "recipe" => [
            files("crates/run/recipes", ".toml"),
            files("recipes", ".toml"),
            files("recipes/science", ".toml"),
        ]
        .concat(),
        "review_record" => texts(&[
            "{\"line\":\"review\",\"version\":1,\"data\":\"x\"}\n\
             {\"line\":\"decision\",\"time\":1,\"reviewer\":\"ann\",\"step\":1,\"row\":2,\"before\":{\"label\":\"a\"},\"after\":\"drop\",\
             \"milliseconds\":5,\"flagged\":true,\"informed\":false}\n{\"line\":\"undo\",\"time\":2,\"reviewer\":\"ann\",\"step\":1}\n",
        ]),
        "review_requests" => [
            with(0, texts(&[
                "POST /api/decide\n\n{\"rows\":[[2,{\"label\":\"cat\"}],[0,\"drop\"]],\"milliseconds\":3,\"informed\":false}",
                "POST /api/undo\n\n",
                "POST /api/classes\norigin: http://127.0.0.1:8080\n\n{\"text\":\"d\"}",
                "GET /api/group?given=1&suggested=0&from=0\n\n",
                "GET /api/evidence?row=2\n\n",
                "GET /picture/0\n\n",
                "GET /api/next\n\n",
            ])),
            with(1, texts(&["GET /?token=0000\nhost: localhost:8080\ncookie: negscale-8080=0; a=b\n\n"])),
        ]
        .concat(),
        "run_folder" => vec![parts(
            b"{\"run\": \"ab\", \"test_last\": 0.5, \"seconds\": 1.0, \"baseline\": {\"test_last\": 0.25}, \"audit_precision\": [0.5, 0.25]}",
            &parts(
                b"{\"epoch\":1,\"seconds\":1.5,\"learning_rate\":0.1,\"losses\":{\"total\":1.0},\"test_accuracy\":0.5}\n",
                b"host = \"rolr\"\ndata = \"x\"\nnoise = \"none\"\nplugin = \"none\"\nepochs = 1\nseed = 1\n[provenance]\nrun = \"ab\"\nversion = \"1\"\nstarted = 5\n",
            ),
        )],
        "safetensors" => files(fixtures, ".safetensors"),
        "shards" => made::shards(),
        "strips" => vec![strips()],
        "table" => texts(&["\x02a,b,label\n1,2.5,cat\n-3e4,nan,dog\n", "\x011,2\n3,4\n"]),
        "tree_indented" => texts(&["animal\n  cat\n  dog\nthing\n  ship\n", "cat\ndog\n"]),
        "tree_tsv" => files("crates/negscale/trees", "10.tsv"),
        "weights" => files("crates/encoders/tests/golden", "legacy.pth"),
        "tree_wordnet" => texts(&[
            "00000003 03 n 01 animal 0 000 | of both\n00000001 03 n 01 cat 0 001 @ 00000003 n 0000 | a\n\
             00000002 03 n 01 dog 0 001 @ 00000003 n 0000 | b\n",
        ]),
        "webvision" => {
            texts(&["google/q0001/a.jpg 0\nflickr/q0002/b.jpg 49\n", "n01440764 tench\nn01443537 goldfish\n"])
        }
        _ => Vec::new(),
    }
}
