//! The picture of a tree.

use negscale::taxonomy::Taxonomy;

use crate::{NO_NAMES, builtin};

#[test]
fn every_class_appears_with_its_name_and_index() {
    let tree = builtin("cifar100");
    let svg = tree.to_svg();
    for (class, name) in tree.class_names().enumerate() {
        assert!(
            svg.contains(&format!(">{class}</text>")) && svg.contains(&format!(">{name}</text>")),
            "{name}"
        );
    }
    // A trunk out of every group and an elbow into every node but the root.
    assert_eq!(svg.matches("<path").count(), tree.nodes() - 100 + tree.nodes() - 1);
}

#[test]
fn names_stay_text_whatever_they_contain() {
    let long = "x".repeat(500);
    let tree =
        Taxonomy::flat(&["<script>alert(1)</script>", "salt & \"pepper\"", "\u{ffff}", "猫", &long]).unwrap();
    let svg = tree.to_svg();
    assert!(
        !svg.contains("<script")
            && svg.contains("&lt;script&gt;")
            && svg.contains("salt &amp; &quot;pepper&quot;")
    );
    assert!(!svg.contains('\u{ffff}') && svg.contains('猫'));
    assert!(svg.contains(&format!("<title>{long}</title>")), "the full name shows when pointed at");
    assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
}

#[test]
fn the_picture_needs_nothing_from_outside_and_knows_the_dark() {
    let svg = builtin("fashion-mnist").to_svg();
    assert_eq!(svg.matches("http").count(), 1, "only the namespace");
    assert!(!svg.contains("href") && !svg.contains("url(") && !svg.contains("@import"));
    assert!(svg.contains("prefers-color-scheme:dark"));
}

#[test]
fn the_smallest_tree_has_a_picture() {
    let svg = Taxonomy::from_indented("one", "thing", NO_NAMES).unwrap().to_svg();
    assert!(svg.contains(">thing</text>") && svg.contains("1 class;"));
}
