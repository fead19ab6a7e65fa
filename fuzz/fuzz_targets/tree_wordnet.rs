#![no_main]
//! WordNet's `data.noun`: the part that spans two synsets.
use libfuzzer_sys::fuzz_target;
use negscale::Taxonomy;
use negscale::taxonomy::WordNetOptions;

fuzz_target!(|data: &[u8]| {
    for contract_unary in [false, true] {
        let options = WordNetOptions::default().with_contract_unary(contract_unary);
        if let Ok(tree) = Taxonomy::from_wordnet("fuzz", data, &["n00000001", "n00000002"], &options) {
            assert_eq!(tree.classes(), 2);
        }
    }
});
