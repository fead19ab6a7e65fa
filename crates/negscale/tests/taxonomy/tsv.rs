//! Tables of nodes: what is read, what is refused, and that writing and reading are inverse.

use negscale::taxonomy::{Taxonomy, Thresholds};
use proptest::prelude::*;

use crate::{between, builtin, complains};

fn read(text: &str) -> negscale::Result<Taxonomy> {
    Taxonomy::from_tsv("test", text)
}

#[test]
fn every_built_in_tree_survives_writing_and_reading() {
    for name in Taxonomy::builtin_names() {
        let tree = builtin(name);
        assert_eq!(Taxonomy::from_tsv(name, &tree.to_tsv()).unwrap(), tree);
    }
}

#[test]
fn heading_depths_order_and_line_ends_are_optional() {
    let plain =
        read("pet\t\t0\t\nfurry\tpet\t1\t\ncat\tfurry\t2\t0\ndog\tfurry\t2\t1\ngoldfish\tpet\t1\t2\n")
            .unwrap();
    for text in [
        "# comment\nnode\tparent\tdepth\tclass_index\npet\t\t0\nfurry\tpet\t1\ncat\tfurry\t2\t0\ndog\tfurry\t2\t1\ngoldfish\tpet\t1\t2",
        "pet\t\t\t\r\nfurry\tpet\r\ncat\tfurry\t\t0\r\n\r\ndog\tfurry\t\t1\r\ngoldfish\tpet\t\t2\r\n",
        "cat\tfurry\t2\t0\ndog\tfurry\t2\t1\nfurry\tpet\t1\ngoldfish\tpet\t1\t2\npet\t\t0\n",
        "\u{feff}Node\tParent\tDepth\tClass_index\npet \t\t 0\nfurry\t pet\t1\ncat\tfurry\t2\t0\t\t\ndog\tfurry\t2\t1\ngoldfish\tpet\t1\t2",
    ] {
        assert_eq!(read(text).unwrap(), plain, "{text}");
    }
    assert_eq!(between(&plain, "cat", "goldfish"), 3);
}

#[test]
fn a_class_may_have_classes_below_it() {
    let tree = read("canine\t\t0\nwolf\tcanine\t1\t0\ncoyote\twolf\t2\t1\ndog\tcanine\t1\t2\n").unwrap();
    assert_eq!((tree.distance(0, 1), tree.distance(1, 2), tree.distances().get(1, 2)), (1, 3, 3));
}

#[test]
fn a_single_class_is_a_tree() {
    let tree = read("thing\t\t0\t0").unwrap();
    assert_eq!((tree.classes(), tree.distance(0, 0), tree.distances().largest()), (1, 0, 0));
}

#[test]
fn every_flaw_is_reported_with_its_line_and_node() {
    for (text, parts) in [
        ("", &["`test`", "empty"][..]),
        ("# only comments\n\n", &["empty"]),
        ("node\tparent\tdepth\tclass_index\n", &["empty"]),
        ("a\tb\nb\ta\n", &["line 1", "`a`", "no root"]),
        ("r\t\nx\tr\t\t0\na\tb\nb\tc\nc\ta\t\t1\n", &["line 3", "`a`", "circle", "a, b, c"]),
        ("r\t\nx\tr\t\t0\na\ta\t\t1\n", &["line 3", "`a`", "circle"]),
        ("r\t\t\t0\n\nq\t\t\t1\n", &["line 3", "`q`", "second root", "`r` in line 1"]),
        (
            "r\t\na\tr\t\t0\nb\tr\t\t2\n",
            &["line 3", "`b`", "class index 2", "no node has class index 1", "0 to 1"],
        ),
        ("r\t\na\tr\t\t4000000000\n", &["line 2", "`a`", "4000000000", "no node has class index 0"]),
        ("r\t\na\tr\t\t0\nb\tr\t\t0\n", &["line 3", "`b`", "class index 0", "`a` in line 2"]),
        ("r\t\na\tr\t\t0\na\tr\t\t1\n", &["line 3", "`a`", "taken", "line 2"]),
        ("root\t\na\troot\t\t0\nb\troof\t\t1\n", &["line 3", "`b`", "`roof`", "did you mean `root`?"]),
        ("r\t\na\tr\t\tzero\n", &["line 2", "`a`", "class index `zero`"]),
        ("r\t\na\tr\t-1\t0\n", &["line 2", "`a`", "depth `-1`"]),
        ("r\t\na\tr\t\t99999999999999999999999\n", &["line 2", "`a`", "not a whole number"]),
        ("r\t\t0\na\tr\t2\t0\n", &["line 2", "`a`", "says 2", "at depth 1"]),
        ("r\t\t1\t0\n", &["line 1", "`r`", "says 1"]),
        ("r\t\na\tr\t\t0\nb\tr\n", &["line 3", "`b`", "leaf that is no class"]),
        ("r\t\t0\t\n\tr\t1\t0\n", &["line 2", "name is empty"]),
        ("r\t\t0\na r 1 0\n", &["line 2", "`a r 1 0`", "no tab"]),
        ("r\t\t0\na\tr\t1\t0\textra\n", &["line 2", "`a`", "fifth column", "`extra`"]),
        ("r\t\t0\na\u{7}\tr\t1\t0\n", &["line 2", "control characters"]),
    ] {
        println!("{text:?}");
        complains(read(text), parts);
    }
}

#[test]
fn a_chain_of_two_hundred_thousand_nodes_overflows_no_stack() {
    let mut text = String::from("n0\t\t0\t\n");
    for i in 1..200_000 {
        text += &format!("n{i}\tn{}\t{i}\t\n", i - 1);
    }
    text += "deep\tn199999\t200000\t0\nhigh\tn0\t1\t1\n";
    let tree = read(&text).unwrap();
    assert_eq!(tree.distance(0, 1), 200_001);
    assert_eq!(tree.distances().get(0, 1), 200_001);
    assert_eq!(tree.summary(Thresholds::default()).unrelated, 1);
    assert!(tree.to_svg().ends_with("</svg>\n"));
    assert_eq!(read(&tree.to_tsv()).unwrap(), tree);

    // The same chain closed to a circle beside the root.
    let circle = text.replace("n1\tn0\t1\t\n", "n1\tn199999\t1\t\n");
    complains(read(&circle), &["circle", "line 2", "`n1`"]);
}

/// A random tree as (parent of each node but the root), and which inner nodes are classes too.
fn any_tree() -> impl Strategy<Value = (Vec<usize>, Vec<bool>, u64)> {
    (2_usize..40).prop_flat_map(|nodes| {
        let parents: Vec<_> = (1..nodes).map(|i| 0..i).collect();
        (parents, prop::collection::vec(prop::bool::weighted(0.2), nodes), any::<u64>())
    })
}

/// The tree as a table with its lines shuffled, and the node of each class.
fn table(parents: &[usize], class_too: &[bool], shuffle: u64) -> (String, Vec<usize>) {
    let nodes = parents.len() + 1;
    let mut order: Vec<usize> = (0..nodes).collect();
    let mut state = shuffle;
    for i in (1..nodes).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, (state >> 33) as usize % (i + 1));
    }
    let mut class_nodes = Vec::new();
    let mut text = String::new();
    for node in order {
        let class = class_too[node] || !parents.contains(&node);
        let index = if class { class_nodes.len().to_string() } else { String::new() };
        if class {
            class_nodes.push(node);
        }
        let parent = if node == 0 { String::new() } else { format!("node {}", parents[node - 1]) };
        text += &format!("node {node}\t{parent}\t\t{index}\n");
    }
    (text, class_nodes)
}

/// Edges from one node to all others, by breadth-first search over the undirected edges.
fn breadth_first(parents: &[usize], from: usize) -> Vec<u32> {
    let mut neighbours = vec![Vec::new(); parents.len() + 1];
    for (i, &parent) in parents.iter().enumerate() {
        neighbours[i + 1].push(parent);
        neighbours[parent].push(i + 1);
    }
    let mut edges = vec![u32::MAX; neighbours.len()];
    edges[from] = 0;
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for &next in &neighbours[node] {
            if edges[next] == u32::MAX {
                edges[next] = edges[node] + 1;
                queue.push_back(next);
            }
        }
    }
    edges
}

proptest! {
    #[test]
    fn distances_of_random_trees_equal_shortest_paths((parents, class_too, shuffle) in any_tree()) {
        let (text, class_nodes) = table(&parents, &class_too, shuffle);
        let tree = read(&text).unwrap();
        let matrix = tree.distances();
        for (a, &node_a) in class_nodes.iter().enumerate() {
            let edges = breadth_first(&parents, node_a);
            for (b, &node_b) in class_nodes.iter().enumerate() {
                prop_assert_eq!(tree.distance(a, b), edges[node_b]);
                prop_assert_eq!(matrix.get(a, b), edges[node_b]);
            }
        }
    }

    #[test]
    fn random_trees_survive_writing_and_reading((parents, class_too, shuffle) in any_tree()) {
        let tree = read(&table(&parents, &class_too, shuffle).0).unwrap();
        prop_assert_eq!(read(&tree.to_tsv()).unwrap(), tree);
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = read(&text);
    }

    #[test]
    fn arbitrary_tables_never_panic_and_what_is_read_can_be_written(
        rows in prop::collection::vec(("[#a-d ]{0,2}", "[a-d]{0,1}", "[0-3]{0,1}", "[0-9]{0,2}"), 0..8)
    ) {
        let text: String = rows.iter().map(|(a, b, c, d)| format!("{a}\t{b}\t{c}\t{d}\n")).collect();
        if let Ok(tree) = read(&text) {
            prop_assert_eq!(read(&tree.to_tsv()).unwrap(), tree);
        }
    }
}
