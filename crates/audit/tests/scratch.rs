mod made_up;
use made_up::*;
#[test]
fn overlaps() {
    for (classes, ds) in [(2, [1.3,1.4, 1.466, 1.5]), (4, [2.0,2.08, 2.2, 2.3]), (10, [2.4,2.5,2.6,2.7])] {
        for d in ds { println!("{classes} {d} {}", world(20000, classes, d, &symmetric(classes, 0.0), 1).overlap()); }
    }
}
