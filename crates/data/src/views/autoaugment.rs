//! The policy AutoAugment found for CIFAR-10 (Cubuk et al., CVPR 2019): one of 25 pairs, each operation with its chance.
//!
//! Levels 0 to 9 run linearly: shear to 0.3, translation to 150/331 of the side, rotation to 30 degrees, enhancement to 0.9 away
//! from 1, posterize from 8 to 4 bits (rounded), solarize from 256 to 0. Shear, translation and enhancement get a random sign;
//! rotation is always counter-clockwise. Outside the picture is grey 128.
//!
//! The table is that of ANNE's released code. It equals torchvision's but for the second chance of the 17th pair, 0.8 here and 0.6
//! there.

use super::canvas::Scratch;
use super::geometry::Edge;
use super::operation::Operation;
use crate::draw::Draw;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    Colour,
    Contrast,
    Sharpness,
    Brightness,
    Posterize,
    Solarize,
    Autocontrast,
    Equalize,
    Invert,
}
use Kind::*;

/// Operation, tenths of a chance, level.
type Step = (Kind, u8, u8);

#[rustfmt::skip]
const POLICY: [[Step; 2]; 25] = [
    [(Invert, 1, 7), (Contrast, 2, 6)],
    [(Rotate, 7, 2), (TranslateX, 3, 9)],
    [(Sharpness, 8, 1), (Sharpness, 9, 3)],
    [(ShearY, 5, 8), (TranslateY, 7, 9)],
    [(Autocontrast, 5, 0), (Equalize, 9, 0)],
    [(ShearY, 2, 7), (Posterize, 3, 7)],
    [(Colour, 4, 3), (Brightness, 6, 7)],
    [(Sharpness, 3, 9), (Brightness, 7, 9)],
    [(Equalize, 6, 0), (Equalize, 5, 0)],
    [(Contrast, 6, 7), (Sharpness, 6, 5)],
    [(Colour, 7, 7), (TranslateX, 5, 8)],
    [(Equalize, 3, 0), (Autocontrast, 4, 0)],
    [(TranslateY, 4, 3), (Sharpness, 2, 6)],
    [(Brightness, 9, 6), (Colour, 2, 8)],
    [(Solarize, 5, 2), (Invert, 0, 0)],
    [(Equalize, 2, 0), (Autocontrast, 6, 0)],
    [(Equalize, 2, 0), (Equalize, 8, 0)],
    [(Colour, 9, 9), (Equalize, 6, 0)],
    [(Autocontrast, 8, 0), (Solarize, 2, 8)],
    [(Brightness, 1, 3), (Colour, 7, 0)],
    [(Solarize, 4, 5), (Autocontrast, 9, 0)],
    [(TranslateY, 9, 9), (TranslateY, 7, 9)],
    [(Autocontrast, 9, 0), (Solarize, 8, 3)],
    [(Equalize, 8, 0), (Invert, 1, 0)],
    [(TranslateY, 7, 9), (Autocontrast, 9, 0)],
];

/// The operation of a level; `sign` is 1 or -1.
fn operation(kind: Kind, level: u8, sign: f64) -> Operation {
    let up_to = |most: f64| level as f64 * (most / 9.0);
    match kind {
        ShearY => Operation::ShearY(up_to(0.3) * sign),
        TranslateX => Operation::TranslateX(up_to(150.0 / 331.0) * sign),
        TranslateY => Operation::TranslateY(up_to(150.0 / 331.0) * sign),
        Rotate => Operation::Rotate(up_to(30.0)),
        Colour => Operation::Colour(1.0 + up_to(0.9) * sign),
        Contrast => Operation::Contrast(1.0 + up_to(0.9) * sign),
        Sharpness => Operation::Sharpness(1.0 + up_to(0.9) * sign),
        Brightness => Operation::Brightness(1.0 + up_to(0.9) * sign),
        Posterize => Operation::Posterize((8.0 - up_to(4.0)).round_ties_even() as u8),
        Solarize => Operation::Solarize(256.0 - up_to(256.0)),
        Autocontrast => Operation::Autocontrast,
        Equalize => Operation::Equalize,
        Invert => Operation::Invert,
    }
}

/// Draws a pair and applies it.
pub(super) fn augment(scratch: &mut Scratch, draw: &mut Draw) {
    for (kind, tenths, level) in POLICY[draw.below(POLICY.len() as u64) as usize] {
        if draw.chance(tenths as f64 / 10.0) {
            let sign = if draw.chance(0.5) { 1.0 } else { -1.0 };
            operation(kind, level, sign).apply(scratch, Edge::AUTOAUGMENT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_run_between_the_published_ends() {
        assert_eq!(operation(Posterize, 0, 1.0), Operation::Posterize(8));
        assert_eq!(operation(Posterize, 7, 1.0), Operation::Posterize(5));
        assert_eq!(operation(Posterize, 9, -1.0), Operation::Posterize(4));
        assert_eq!(operation(Solarize, 9, 1.0), Operation::Solarize(0.0));
        assert_eq!(operation(Rotate, 9, -1.0), Operation::Rotate(30.0), "no sign");
        assert_eq!(operation(Colour, 0, -1.0), Operation::Colour(1.0));
        let Operation::Brightness(v) = operation(Brightness, 9, -1.0) else { panic!("another operation") };
        assert!((v - 0.1).abs() < 1e-15);
        let Operation::TranslateY(v) = operation(TranslateY, 9, -1.0) else { panic!("another operation") };
        assert!((v + 150.0 / 331.0).abs() < 1e-15);
    }

    #[test]
    fn an_operation_of_no_chance_never_happens() {
        assert_eq!(POLICY[14][1], (Invert, 0, 0));
        let mut draw = Draw::new(1, crate::draw::Purpose::View, 0, 0);
        assert!((0..10_000).all(|_| !draw.chance(0.0)));
    }
}
