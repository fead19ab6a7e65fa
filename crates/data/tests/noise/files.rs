use crate::material::{balanced, noise, numbered, vectors};
use negscale_data::noise::{NoiseContext, apply};
use negscale_data::{Dataset, Noise, NoiseSpec};
use std::path::Path;

fn read(path: &Path, dataset: &Dataset) -> Result<Noise, String> {
    let spec = NoiseSpec::File(path.into());
    apply(&spec, dataset, 77, &NoiseContext::default()).map_err(|error| error.to_string())
}

#[test]
fn a_noise_file_gives_back_the_same_noise() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.json");
    let data = balanced(numbered(10), 100);
    for spec in ["sym:0.1", "ins:0.3:input=unit", "none", "asym-map:0.123456789012345678:map=1to2"] {
        let noise = noise(spec, &data, u64::MAX);
        noise.save(&path, &data).unwrap();
        assert_eq!(Noise::load(&path, &data).unwrap(), noise);
        assert_eq!(read(&path, &data).unwrap(), noise);
    }
    // Nothing but the file itself is left behind.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    // And it still belongs to the data once the noise is laid over them.
    let noisy = data.with_noise(Noise::load(&path, &data).unwrap().labels).unwrap();
    assert!(Noise::load(&path, &noisy).is_ok());
}

#[test]
fn a_changed_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.json");
    let data = balanced(numbered(10), 20);
    noise("sym:0.5", &data, 3).save(&path, &data).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let change = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        Noise::load(&path, &data).unwrap_err().to_string()
    };
    assert!(change("\"seed\":3", "\"seed\":4").contains("it was changed"));
    assert!(change("sym-incl:0.5", "sym-incl:0.6").contains("it was changed"));
    assert!(change("true class included", "true class excluded").contains("it was changed"));
    assert!(change("\"nominal\":0.5", "\"nominal\":0.6").contains("states rates"));
    assert!(change("\"achieved\":0.", "\"achieved\":0.1").contains("states rates"));
    assert!(
        change("\"format\":\"negscale-noise-1", "\"format\":\"negscale-noise-9").contains("negscale-noise-9")
    );
    assert!(change("]}", ",3]}").contains("201 labels for 200 items"));
    let first = noise("sym:0.5", &data, 3).labels[0];
    let labels = |label| format!("\"labels\":[{label},");
    assert!(change(&labels(first), &labels((first + 1) % 10)).contains("it was changed"));
    assert!(change(&labels(first), &labels(99)).contains("it was changed"));
    for cut in [text.len() - 1, text.len() / 2, 1] {
        std::fs::write(&path, &text[..cut]).unwrap();
        assert!(Noise::load(&path, &data).unwrap_err().to_string().contains("cut short"));
    }
    std::fs::write(&path, text.clone() + &" ".repeat(2_000_000)).unwrap();
    assert!(Noise::load(&path, &data).unwrap_err().to_string().contains("too large"));
}

#[test]
fn a_file_for_other_data_is_refused_and_says_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.json");
    let data = balanced(numbered(10), 20);
    let noise = noise("sym:0.5", &data, 3);
    noise.save(&path, &data).unwrap();
    let error = |data: &Dataset| Noise::load(&path, data).unwrap_err().to_string();
    assert!(error(&balanced(numbered(10), 21)).contains("made for 200 items, but `balanced` has 210"));
    let more = Dataset::new("more", numbered(11), vectors(200, 1), data.given().to_vec(), None).unwrap();
    assert!(error(&more).contains("made for 10 classes, but `more` has 11"));
    let mut labels = data.given().to_vec();
    labels.swap(0, 1);
    let moved = Dataset::new("moved", numbered(10), vectors(200, 1), labels, None).unwrap();
    let message = error(&moved);
    assert!(message.contains("other true labels") && message.contains("class names agree"), "{message}");
    assert!(noise.save(&path, &moved).unwrap_err().to_string().contains("made for other data"));
    assert!(Noise::load(&path, &data).is_ok());
    // Other names for the same classes are no reason to refuse: embeddings and pictures share noise.
    let names = (0..10).map(|c| c.to_string()).collect();
    let named = Dataset::new("named", names, vectors(200, 1), data.given().to_vec(), None).unwrap();
    assert_eq!(Noise::load(&path, &named).unwrap(), noise);
}

#[test]
fn a_file_that_cannot_be_written_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = balanced(numbered(10), 2);
    let noise = noise("sym:0.5", &data, 3);
    assert!(noise.save(&folder.path().join("missing/noise.json"), &data).is_err());
    let taken = folder.path().join("taken");
    std::fs::create_dir_all(taken.join("inside")).unwrap();
    assert!(noise.save(&taken, &data).is_err());
    assert!(noise.save(Path::new(""), &data).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn plain_lists_are_read_in_their_usual_forms() {
    let folder = tempfile::tempdir().unwrap();
    let names = vec!["cat".into(), "dog, big".into(), "7".into()];
    let data = Dataset::new("d", names, vectors(4, 1), vec![0, 1, 2, 0], None).unwrap();
    let path = folder.path().join("list");
    let mut hashes = Vec::new();
    for text in [
        "0\n1\n2\n2\n",
        "0\r\n1\r\n2\r\n2\r\n\r\n",
        "0, 1, 2, 2",
        "\u{feff}label\n0\n1\n2\n2\n",
        "file_name,noisy_label\na.png,cat\nb.png,\"1\"\nc.png,2\nd.png,2\n",
        "cat\n1\n2\n2\n",
        "index,label\n3,7\n1,\"dog, big\"\n0,cat\n2,7\n",
        "label;index\n1;1\n2;2\n0;0\n2;3\n",
    ] {
        std::fs::write(&path, text).unwrap();
        let noise = read(&path, &data).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(noise.labels, [0, 1, 2, 2], "{text}");
        assert_eq!((noise.nominal, noise.achieved, noise.seed), (None, 0.25, 0));
        hashes.push(noise.hash);
    }
    assert!(hashes.iter().all(|hash| *hash == hashes[0]));
    for (text, part) in [
        ("", "0 labels for 4 items"),
        ("0\n1\n2\n", "3 labels for 4 items"),
        ("0\n1\n2\n2\n2\n", "more than 4 labels for 4 items"),
        ("0,1,2", "3 labels for 4 items"),
        ("0\n1\n3\n2\n", "line 3: `3` is not a class"),
        ("0\n-1\n", "line 2: `-1` is not a class"),
        ("0\n7\n", "line 2: `7` is not a class"),
        ("a.png,0\nb.png,1\n", "header"),
        ("0\n1,2\n", "line 2: 2 fields where the first line has 1"),
        ("a,label\nx\n", "line 2: 1 fields where the first line has 2"),
        ("0\n1\n\n2\n2\n", "line 3: a blank line"),
        ("index,label\n0,0\n1,1\n2,2\n1,2\n", "line 5: a second label for item 1"),
        ("index,label\n0,0\n1,1\n2,2\n4,2\n", "line 5: there is no item with index `4`"),
        ("{}", "not a noise file"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = read(&path, &data).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
    std::fs::write(&path, "9".repeat(3_000_000)).unwrap();
    assert!(read(&path, &data).is_err());
    std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    assert!(read(&path, &data).is_err());
    assert!(read(&folder.path().join("absent"), &data).unwrap_err().contains("absent"));
}

#[test]
fn npy_lists_of_every_whole_number_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.npy");
    let data = Dataset::new("d", numbered(300), vectors(3, 1), vec![0; 3], None).unwrap();
    let npy = |version: u8, descr: &str, shape: &str, bytes: &[u8]| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = vec![0x93, b'N', b'U', b'M', b'P', b'Y', version, 0];
        let length = (header.len() as u32).to_le_bytes();
        file.extend(if version == 1 { &length[..2] } else { &length[..] });
        file.extend(header.bytes());
        file.extend(bytes);
        std::fs::write(&path, file).unwrap();
        read(&path, &data)
    };
    assert_eq!(npy(1, "|u1", "(3,)", &[1, 2, 255]).unwrap().labels, [1, 2, 255]);
    assert_eq!(npy(2, "<u2", "(3,)", &[1, 0, 2, 0, 3, 1]).unwrap().labels, [1, 2, 259]);
    assert_eq!(npy(1, ">i2", "(3, 1)", &[0, 1, 0, 2, 1, 3]).unwrap().labels, [1, 2, 259]);
    let long: Vec<u8> = [1i64, 2, 3].iter().flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(npy(3, "<i8", "(3,)", &long).unwrap().labels, [1, 2, 3]);
    let negative: Vec<u8> = [1i64, -2, 3].iter().flat_map(|n| n.to_le_bytes()).collect();
    assert!(npy(1, "<i8", "(3,)", &negative).unwrap_err().contains("row 1"));
    assert!(
        npy(1, "<i2", "(3,)", &[1, 0, 2, 0, 44, 1])
            .unwrap_err()
            .contains("row 2: label 300 in column 0 is not a class")
    );
    assert!(npy(1, "<f4", "(3,)", &[0; 12]).unwrap_err().contains("whole numbers"));
    assert!(npy(1, "|u1", "(4,)", &[0; 4]).unwrap_err().contains("4 x 1 labels for 3 items"));
    assert!(npy(1, "|u1", "(3,)", &[0; 2]).unwrap_err().contains("does not fit"));
    assert!(npy(1, "<u8", "(2305843009213693953, 8)", &[0; 8]).unwrap_err().contains("does not fit"));
    assert!(npy(1, "|u1", "(1, 1, 3)", &[0; 3]).unwrap_err().contains("one or two dimensions"));
    assert!(npy(9, "|u1", "(3,)", &[0; 3]).is_err());
    std::fs::write(&path, b"\x93NUMPY\x02\x00\xff\xff\xff\xff").unwrap();
    assert!(read(&path, &data).unwrap_err().contains("claims 4294967295 bytes"));
    std::fs::write(&path, b"\x93NUMPY\x01\x00\xff").unwrap();
    assert!(read(&path, &data).unwrap_err().contains("too few for the header"));
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(
        start in proptest::sample::select(vec![
            "", "{", "\u{feff}label,", "0,1\n", "{\"format\":\"negscale-noise-1\",\"spec\":\"",
        ]),
        npy in proptest::bool::ANY,
        header in "\\{'descr': '[<>|][uif][1248]', 'shape': \\([0-9]{0,20},[0-9 ]{0,3}\\)",
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let mut file = match npy {
            true => [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat(),
            false => start.as_bytes().to_vec(),
        };
        file.extend(bytes);
        std::fs::write(&path, file).unwrap();
        let data = balanced(numbered(3), 2);
        if let Ok(noise) = read(&path, &data) {
            assert!(noise.labels.len() == 6 && noise.labels.iter().all(|&label| label < 3));
        }
    }
}
