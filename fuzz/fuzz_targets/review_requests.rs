#![no_main]
//! Requests to the review page by a browser that was let in, and by one that was not: a line of method and address, lines of headers, an empty line, a
//! body. HTTP itself is hyper's.
#[path = "support/place.rs"]
mod place;

use libfuzzer_sys::fuzz_target;
use negscale_data::{Dataset, FeatureStore, Items, Result};
use negscale_review::content::Content;
use negscale_review::record::Record;
use negscale_review::samples::Samples;
use negscale_review::server::App;
use negscale_review::session::Session;
use std::cell::RefCell;
use std::sync::Arc;

/// Requests after which the session begins anew, so that its record does not grow for ever.
const LONGEST: usize = 2000;
const PORT: u16 = 8080;
const AUDIT: &str = "index,path,given,suggested,score,clean_probability,suggested_probability,tree_distance,flag\n\
                     2,c,dog,cat,0.9,0.1,0.8,2,1\n0,a,cat,dog,0.7,0.2,0.7,2,1\n1,b,cat,dog,0.1,0.9,0.1,2,0\n";

struct Three;

impl FeatureStore for Three {
    fn len(&self) -> usize {
        3
    }
    fn dim(&self) -> usize {
        1
    }
    fn read(&self, _: usize, out: &mut [f32]) -> Result<()> {
        out.fill(0.0);
        Ok(())
    }
}

fn app() -> App {
    let folder = place::folder("review");
    let classes = ["cat", "dog"].map(String::from);
    let audit = place::put(&folder, "audit.csv", AUDIT.as_bytes());
    let samples = Samples::read(&audit, &classes, 0.0).expect("the list is a good one");
    let record = folder.join("review.jsonl");
    let _ = std::fs::remove_file(&record);
    let (record, lines) = Record::open(&record, "fuzz").expect("a new record");
    let items = Items::Features(Arc::new(Three));
    let data = Dataset::new("fuzz", classes.to_vec(), items, vec![0, 0, 1], None).expect("three rows");
    App::new(Session::new(samples, record, lines), Content::new(data, None), "fuzz", "ann", PORT)
        .expect("random numbers")
}

thread_local! {
    static APP: RefCell<(usize, Option<App>)> = const { RefCell::new((0, None)) };
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, request)) = data.split_first() else { return };
    APP.with_borrow_mut(|(count, app)| {
        if *count % LONGEST == 0 {
            *app = None;
        }
        *count += 1;
        let app = app.get_or_insert_with(self::app);
        let address = app.address();
        let token = address.split_once("token=").map_or("", |(_, token)| token);
        let mut known = String::new();
        if choice & 1 == 0 {
            known = format!(
                "host: 127.0.0.1:{PORT}\ncontent-type: application/json\ncookie: negscale-{PORT}={token}\n"
            );
        }
        let status = app.ask(&known, request);
        // Without the cookie nothing is told or changed.
        assert!(choice & 1 == 0 || status.is_none_or(|status| (400..500).contains(&status)), "{status:?}");
    });
});
