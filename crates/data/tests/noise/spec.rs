use negscale_data::noise::{HumanLabels, NoiseInput, NoiseMatrices, NoiseSpec, Rate};
use std::path::PathBuf;

fn parse(text: &str) -> NoiseSpec {
    text.parse().unwrap()
}

fn error(text: &str) -> String {
    text.parse::<NoiseSpec>().unwrap_err().to_string()
}

#[test]
fn short_forms_print_in_full_and_read_back() {
    for (short, full) in [
        ("none", "none"),
        ("sym:0.5", "sym-incl:0.5"),
        ("sym-incl:0.50", "sym-incl:0.5"),
        ("sym-excl:0.2", "sym-excl:0.2"),
        ("sym-exact:1", "sym-exact:1"),
        ("asym:0.4", "asym:0.4"),
        ("asym-map:.4", "asym-map:0.4"),
        ("asym-map:0.4:map=9to1+2to0", "asym-map:0.4:map=9to1+2to0"),
        ("asym-block:0.4", "asym-block:0.4"),
        ("asym-super:4e-1", "asym-super:0.4"),
        ("pairflip:0.45", "pairflip:0.45"),
        ("ins:0.4", "ins:0.4:input=raw:matrix=per-class"),
        ("ins:0.4:matrix=shared:input=normalised", "ins:0.4:input=normalised:matrix=shared"),
        (" cifarn:worst ", "cifarn:worse"),
        ("cifarn:aggregate", "cifarn:aggre"),
        ("cifarn:random3", "cifarn:random3"),
        ("cifarn:noisy", "cifarn:fine"),
        ("file:a:b=c/d.json", "file:a:b=c/d.json"),
        ("sym:-0", "sym-incl:0"),
    ] {
        let spec = parse(short);
        assert_eq!(spec.to_string(), full);
        assert_eq!(parse(full), spec);
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(json, format!("\"{full}\""));
        assert_eq!(serde_json::from_str::<NoiseSpec>(&json).unwrap(), spec);
    }
}

#[test]
fn texts_mean_what_they_say() {
    let rate = Rate::new(0.4).unwrap();
    assert_eq!(
        parse("ins:0.4:input=unit"),
        NoiseSpec::Ins { rate, input: NoiseInput::Unit, matrices: NoiseMatrices::PerClass }
    );
    let map = Some(vec![(9, 1), (2, 0)]);
    assert_eq!(parse("asym-map:0.4:map=9to1+2to0"), NoiseSpec::AsymMap { rate, map });
    assert_eq!(parse("cifarn:worst"), NoiseSpec::CifarN(HumanLabels::Worse));
    assert_eq!(parse("file:x y.csv"), NoiseSpec::File(PathBuf::from("x y.csv")));
}

#[test]
fn mistakes_are_named_with_what_would_be_right() {
    for (text, part) in [
        ("sim:0.5", "nearest is `sym`"),
        ("pair-flip:0.5", "nearest is `pairflip`"),
        ("asym-supper:0.5", "nearest is `asym-super`"),
        ("", "there are none, sym, sym-incl"),
        ("\u{1f600}:0.5", "unknown kind"),
        ("sym", "needs a rate"),
        ("sym:", "needs a rate between 0 and 1, as in sym:0.4"),
        ("sym:1.01", "between 0 and 1"),
        ("sym:-0.1", "between 0 and 1"),
        ("sym:40", "40 % is written 0.4"),
        ("sym:40%", "40 % is written 0.4"),
        ("sym:NaN", "between 0 and 1"),
        ("sym:inf", "between 0 and 1"),
        ("sym:0.5:input=raw", "`sym` has no options"),
        ("ins:0.4:inputs=raw", "`input` (raw, unit, normalised)"),
        ("ins:0.4:input=normalized", "nearest is `normalised`"),
        ("ins:0.4:input=raw:input=unit", "twice"),
        ("ins:0.4:raw", "option=value"),
        ("asym-map:0.4:map=9-1", "write it as 9to1"),
        ("asym-map:0.4:map=9to9", "one other class"),
        ("asym-map:0.4:map=9to1+9to2", "named once"),
        ("asym-map:0.4:map=", "write it as 9to1"),
        ("none:0.1", "takes no rate"),
        ("cifarn", "there are aggre, worse"),
        ("cifarn:wosre", "nearest is `worse`"),
        ("file:", "needs a path"),
        ("file", "needs a path"),
    ] {
        let error = error(text);
        assert!(error.contains(part), "{text}: {error}");
        assert!(error.contains(text.trim()), "{text}: {error}");
    }
    assert!(Rate::new(f64::NAN).is_err());
    assert!(serde_json::from_str::<NoiseSpec>("\"sym:2\"").is_err());
}

proptest::proptest! {
    #[test]
    fn whatever_is_read_prints_and_reads_back(
        text in "(sym|asym-map|ins|cifarn|file|pairflip|none)?:?[0-9.]{0,5}(:?(map=|input=|matrix=)?.{0,9}){0,2}",
    ) {
        if let Ok(spec) = text.parse::<NoiseSpec>() {
            assert_eq!(parse(&spec.to_string()), spec);
        }
    }
}
