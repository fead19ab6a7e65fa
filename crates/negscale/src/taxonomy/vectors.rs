//! Classes as unit vectors whose cosines the tree decides.
//!
//! Give every edge of the tree an axis, and class $c$ the coordinate 1 on the edges from the root to it, else 0: point $x_c$. Two classes
//! differ in the edges between them, so $|x_a - x_b|^2 = D(a, b)$. The vectors are $v_c = (x_c - \bar x) / |x_c - \bar x|$ with $\bar x$ the
//! mean of all classes. Only distances are needed: with $\bar D_a = \frac1C \sum_b D(a, b)$ and $\bar D$ the mean of these,
//!
//! $$ G_{ab} = (x_a - \bar x)^\top (x_b - \bar x) = \tfrac12 (\bar D_a + \bar D_b - \bar D - D(a, b)), \qquad v_a^\top v_b = G_{ab} / \sqrt{G_{aa} G_{bb}}. $$
//!
//! $G$ is positive semi-definite, because it is a matrix of inner products, and no $G_{aa}$ is 0 with two or more classes, because no corner of a cube is the mean of
//! several. Where all classes have the same mean distance (a balanced tree), the cosine is $1 - D(a, b) / \bar D_a$: it falls evenly with the distance. A flat tree gives
//! the simplex, all cosines $-1/(C-1)$.

use super::Taxonomy;

/// What is left of a vector's squared length (1) by rounding.
const NOTHING: f64 = 1e-9;

/// Unit vectors of the classes, in as few dimensions as they need.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassVectors {
    /// Their dimension, less than the number of classes.
    pub dim: usize,
    /// One row for each class.
    pub rows: Vec<f64>,
}

impl Taxonomy {
    /// Unit vectors of the classes whose cosines fall with their distance. One class alone has no direction: its row is empty.
    pub fn class_vectors(&self) -> ClassVectors {
        let (classes, distances) = (self.classes(), self.distances());
        let n = classes as f64;
        let means: Vec<f64> =
            (0..classes).map(|a| distances.row(a).iter().map(|&d| f64::from(d)).sum::<f64>() / n).collect();
        let mean = means.iter().sum::<f64>() / n;
        let inner = |a: usize, b: usize| 0.5 * (means[a] + means[b] - mean - f64::from(distances.get(a, b)));
        let cosine = |a: usize, b: usize| inner(a, b) / (inner(a, a) * inner(b, b)).sqrt();
        // Cholesky's factor, the class with most left over first: as many columns as the matrix has dimensions.
        let (mut left, mut columns) = (vec![1.0; classes], Vec::<Vec<f64>>::new());
        while columns.len() + 1 < classes {
            let pivot = (0..classes).fold(0, |best, c| if left[c] > left[best] { c } else { best });
            if left[pivot] < NOTHING {
                break;
            }
            let root = left[pivot].sqrt();
            let rest = |c: usize| columns.iter().map(|column| column[c] * column[pivot]).sum::<f64>();
            let column: Vec<f64> = (0..classes).map(|c| (cosine(c, pivot) - rest(c)) / root).collect();
            left.iter_mut().zip(&column).for_each(|(left, value)| *left -= value * value);
            columns.push(column);
        }
        let rows = (0..classes).flat_map(|c| columns.iter().map(move |column| column[c])).collect();
        ClassVectors { dim: columns.len(), rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Coordinates of a class by the definition: 1 for every node on its way from the root, whose edge leads to it.
    fn literal(tree: &Taxonomy) -> Vec<Vec<f64>> {
        let ways: Vec<Vec<&str>> = (0..tree.classes())
            .map(|class| std::iter::once(tree.class_name(class)).chain(tree.ancestors(class)).collect())
            .collect();
        let mut nodes: Vec<&str> = ways.iter().flatten().copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        let points: Vec<Vec<f64>> = ways
            .iter()
            .map(|way| nodes.iter().map(|node| f64::from(u8::from(way.contains(node)))).collect())
            .collect();
        let n = points.len() as f64;
        let mean: Vec<f64> = (0..nodes.len()).map(|j| points.iter().map(|p| p[j]).sum::<f64>() / n).collect();
        let centred = points.iter().map(|p| p.iter().zip(&mean).map(|(x, m)| x - m).collect::<Vec<_>>());
        centred
            .map(|p| {
                let length = p.iter().map(|x| x * x).sum::<f64>().sqrt();
                p.iter().map(|x| x / length).collect()
            })
            .collect()
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn cosines_are_those_of_the_points_that_edges_make() {
        for name in ["cifar10", "cifar100", "fashion-mnist"] {
            let tree = Taxonomy::builtin(name).unwrap();
            let (wanted, found) = (literal(&tree), tree.class_vectors());
            assert!(found.dim < tree.classes());
            let row = |c: usize| &found.rows[c * found.dim..(c + 1) * found.dim];
            for a in 0..tree.classes() {
                for b in 0..tree.classes() {
                    let gap = dot(row(a), row(b)) - dot(&wanted[a], &wanted[b]);
                    assert!(gap.abs() < 1e-6, "{name} {a} {b}: {gap}");
                }
            }
        }
    }

    #[test]
    fn a_flat_tree_gives_the_simplex_and_a_balanced_one_cosines_that_fall_evenly() {
        let flat = Taxonomy::flat(&["a", "b", "c", "d"]).unwrap().class_vectors();
        assert_eq!(flat.dim, 3);
        for a in 0..4 {
            for b in 0..a {
                let cosine = dot(&flat.rows[a * 3..a * 3 + 3], &flat.rows[b * 3..b * 3 + 3]);
                assert!((cosine + 1.0 / 3.0).abs() < 1e-12, "{a} {b}: {cosine}");
            }
        }
        let text = "all\n  x\n    a\n    b\n  y\n    c\n    d\n";
        let tree = Taxonomy::from_indented("even", text, &["a", "b", "c", "d"]).unwrap();
        let vectors = tree.class_vectors();
        // Distances 2 within and 4 across, 2.5 on average.
        for (a, b, wanted) in [(0, 1, 1.0 - 2.0 / 2.5), (0, 2, 1.0 - 4.0 / 2.5), (2, 3, 1.0 - 2.0 / 2.5)] {
            let row = |c: usize| &vectors.rows[c * vectors.dim..(c + 1) * vectors.dim];
            assert!((dot(row(a), row(b)) - wanted).abs() < 1e-12);
        }
        assert_eq!(Taxonomy::flat(&["only"]).map(|tree| tree.class_vectors().dim).unwrap_or(0), 0);
    }
}
