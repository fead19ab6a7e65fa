//! `negscale review` as a browser and as a stranger meet it: who is let in, and that no decision is lost.
#![allow(clippy::unwrap_used)]

mod support;

use parquet::file::serialized_reader::SerializedFileReader;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use support::parquet::{Column, write_parquet};
use support::{Chance, command, fail, fails, fine, folder, text};

/// A table of three classes with hostile names, of which some labels are wrong, with a column of text; audited.
fn audited(here: &Path) -> PathBuf {
    let names = ["=cmd|x", "<img src=x>", "../../etc/passwd"];
    let mut chance = Chance(5);
    let mut table = String::from("text,a,b,c,kind\n");
    for row in 0..300 {
        let class = row % 3;
        let mut number = |at: usize| if at == class { 4.0 + chance.next() } else { chance.next() };
        let numbers = [number(0), number(1), number(2)];
        let label = names[if row % 9 == 4 { (class + 1) % 3 } else { class }];
        table += &format!(
            "\"row {row}: <b>it</b>, \"\"quoted\"\"\",{},{},{},{label}\n",
            numbers[0], numbers[1], numbers[2]
        );
    }
    let (data, run) = (here.join("t.csv"), here.join("run"));
    fs::write(&data, table).unwrap();
    fine(&["audit", text(&data), "--label-column", "kind", "--ignore-columns", "text", "--out", text(&run)]);
    run
}

/// A review that goes on, ended when dropped.
struct Review {
    child: Child,
    port: u16,
    token: String,
}

impl Drop for Review {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Review {
    fn start(run: &Path, more: &[&str]) -> Self {
        let mut command = command(&["review", text(run), "--no-open"]);
        let mut child = command.args(more).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (port, token) =
            line.trim().strip_prefix("http://127.0.0.1:").unwrap().split_once("/?token=").unwrap();
        Self { child, port: port.parse().unwrap(), token: token.to_owned() }
    }

    fn client(&self) -> Client {
        Client { stream: BufReader::new(TcpStream::connect(("127.0.0.1", self.port)).unwrap()) }
    }

    /// Headers of a browser that was let in.
    fn known(&self) -> String {
        format!("Host: 127.0.0.1:{}\r\nCookie: negscale-{}={}\r\n", self.port, self.port, self.token)
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.client().ask("GET", path, &self.known(), "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    fn post(&self, client: &mut Client, path: &str, body: &Value) -> Value {
        let headers = format!("{}Content-Type: application/json\r\n", self.known());
        let (status, answer) = client.ask("POST", path, &headers, &body.to_string());
        assert_eq!(status, 200, "{path}: {answer}");
        serde_json::from_str(&answer).unwrap()
    }
}

struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) {
        let length = body.len();
        let request = format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
    }

    /// Status and body.
    fn ask(&mut self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        self.send(method, path, headers, body);
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().unwrap();
            } else if let Some(rest) = line.to_lowercase().strip_prefix("content-length:") {
                length = rest.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}

fn decision(row: &Value, after: Value) -> Value {
    json!({ "rows": [[row, after]], "milliseconds": 7, "informed": false })
}

#[test]
fn strangers_are_refused() {
    let here = folder("strangers");
    let review = Review::start(&audited(&here), &[]);
    let (port, token) = (review.port, &review.token);
    let status = |method: &str, path: &str, headers: &str, body: &str| {
        review.client().ask(method, path, headers, body).0
    };
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let known = review.known();
    for path in ["/", "/review.js", "/api/next", "/picture/0", "/?token=", "/?token=0000", "/?ticket=0"] {
        assert_eq!(status("GET", path, &host, ""), 401, "{path}");
    }
    assert_eq!(
        status("GET", "/api/next", &format!("{host}Cookie: negscale-{port}={}0\r\n", &token[1..]), ""),
        401
    );
    assert_eq!(status("GET", &format!("/?token={token}"), &host, ""), 303);
    // Not elsewhere than on the page: an address with the token in it must not be of use inside pages.
    assert_eq!(status("GET", &format!("/api/next?token={token}"), &host, ""), 401);
    let cookie = format!("Cookie: negscale-{port}={token}\r\n");
    for foreign in ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", "[::1]"] {
        assert_eq!(status("GET", "/", &format!("Host: {foreign}\r\n{cookie}"), ""), 421, "{foreign}");
    }
    assert_eq!(status("GET", "/", &format!("{known}Host: evil.example\r\n"), ""), 421);
    assert_eq!(status("GET", "/", &format!("Host: localhost:{port}\r\n{cookie}"), ""), 200);
    let body = decision(&json!(0), json!("drop")).to_string();
    let json = "Content-Type: application/json\r\n";
    assert_eq!(
        status("POST", "/api/decide", &format!("{known}{json}Origin: http://evil.example\r\n"), &body),
        403
    );
    assert_eq!(status("POST", "/api/decide", &format!("{known}{json}Origin: null\r\n"), &body), 403);
    assert_eq!(status("POST", "/api/decide", &format!("{known}Content-Type: text/plain\r\n"), &body), 415);
    assert_eq!(status("POST", "/api/decide", &format!("{known}{json}"), &" ".repeat(100_000)), 413);
    assert_eq!(status("GET", "/api/decide", &known, ""), 404);
    assert_eq!(status("DELETE", "/", &known, ""), 404);
    let paths = [
        "/../../etc/passwd",
        "/picture/../settings.toml",
        "/picture/%2e%2e%2faudit.csv",
        "/picture/-1",
        "/audit.csv",
        "/picture/99999999",
    ];
    for path in paths {
        assert_eq!(status("GET", path, &known, ""), 404, "{path}");
    }
    let record = fs::read_to_string(here.join("run/review.jsonl")).unwrap();
    assert_eq!(record.lines().count(), 1, "nothing was decided: {record}");
}

#[test]
fn decisions_come_back_after_a_restart_and_are_exported() {
    let here = folder("restart");
    let run = audited(&here);
    let mut review = Review::start(&run, &["--blind", "0", "--reviewer", "ann"]);
    let mut client = review.client();
    let first = review.get("/api/next")["next"][0].clone();
    let words = first["columns"][0][1].as_str().unwrap().to_owned();
    assert!(words.starts_with("row ") && words.ends_with(": <b>it</b>, \"quoted\""), "{words}");
    let evidence = &first["evidence"];
    assert!(evidence["reasons"][0].as_str().unwrap().starts_with("models give"), "{first}");
    let near = evidence["near"].as_array().unwrap();
    assert!(near.len() == 10 && near[0]["words"].as_str().unwrap().starts_with("text row "), "{first}");
    let told = evidence["reasons"][1].as_str().unwrap();
    let as_given = near.iter().filter(|one| one["label"] == first["given"]).count();
    assert!(told.contains(&format!(", {as_given} {}", first["given"].as_str().unwrap())), "{told}: {near:?}");
    assert_eq!(first["tree"]["given"].as_array().unwrap().last(), Some(&first["given"]));
    let suggested = json!({ "label": first["suggested"] });
    let state = review.post(&mut client, "/api/decide", &decision(&first["row"], suggested));
    let second = state["next"][0].clone();
    let state = review.post(&mut client, "/api/decide", &decision(&second["row"], json!("drop")));
    let third = state["next"][0].clone();
    review.post(&mut client, "/api/decide", &decision(&third["row"], json!("unsure")));
    assert_eq!(review.post(&mut client, "/api/undo", &json!({}))["first"]["row"], third["row"]);
    let data = here.join("t.csv");
    let audit_again =
        ["audit", text(&data), "--label-column", "kind", "--ignore-columns", "text", "--out", text(&run)];
    let refusal = fail(command(&audit_again).arg("--fresh"));
    assert!(refusal.contains("another process is using"), "{refusal}");

    let pid = review.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert!(review.child.wait().unwrap().success());
    drop(review);
    let record = run.join("review.jsonl");
    let torn = fs::read_to_string(&record).unwrap() + "{\"line\":\"deci";
    fs::write(&record, torn).unwrap();
    let review = Review::start(&run, &["--blind", "0", "--reviewer", "ann"]);
    let state = review.get("/api/next");
    assert_eq!((&state["decided"], &state["next"][0]["row"]), (&json!(2), &third["row"]));
    drop(review);
    assert!(fs::read_to_string(&record).unwrap().ends_with("}\n"));

    let said = fine(&["review", "export", text(&run)]);
    assert!(said.starts_with("1 labels changed, 0 kept, 1 dropped, 0 unsure"), "{said}");
    let parquet =
        SerializedFileReader::new(fs::File::open(run.join("review/corrected.parquet")).unwrap()).unwrap();
    let words: Vec<String> = parquet.into_iter().map(|row| row.unwrap().to_string()).collect();
    let dropped: Vec<&String> = words.iter().filter(|row| row.contains("review: \"dropped\"")).collect();
    assert!(words.len() == 300 && dropped.len() == 1 && dropped[0].contains("label: null"), "{dropped:?}");
    let corrected = run.join("review/corrected.csv");
    let rows: Vec<csv::StringRecord> =
        csv::Reader::from_path(&corrected).unwrap().records().map(|row| row.unwrap()).collect();
    let row = |sample: &Value| &rows[sample["row"].as_u64().unwrap() as usize];
    assert_eq!((&row(&first)[4], &row(&first)[5]), ("true", "changed"));
    assert_eq!((&row(&second)[2], &row(&second)[4], &row(&second)[5]), ("", "false", "dropped"));
    let trained = here.join("trained");
    let model = ["train", "--data", text(&data), "--labels", text(&corrected), "--label-column", "kind"];
    let more =
        ["--ignore-columns", "text", "--host", "cross-entropy", "--epochs", "1", "--out", text(&trained)];
    fine(&[&model[..], &more, &["--set", "baseline=none", "--json"]].concat());
    let results: Value = serde_json::from_slice(&fs::read(trained.join("results.json")).unwrap()).unwrap();
    assert_eq!(
        (&results["samples"], &results["review_dropped"], &results["review_changed"]),
        (&json!(299), &json!(1), &json!(1))
    );
    let page = fs::read_to_string(trained.join("report.html")).unwrap();
    assert!(page.contains("Labels looked at in a review") && page.contains("1 dropped and left out"));
    let again = here.join("again");
    fine(&[
        "audit",
        text(&data),
        "--ignore-columns",
        "text,kind",
        "--labels",
        text(&corrected),
        "--out",
        text(&again),
    ]);
    // An audit that starts over leaves what people decided.
    fine(&[&audit_again[..], &["--fresh"]].concat());
    assert!(record.exists() && corrected.exists());
}

#[test]
fn two_reviewers_at_the_same_time_lose_nothing_and_learn_how_far_they_agree() {
    let here = folder("two");
    let run = audited(&here);
    let reviews = ["ann", "bob"].map(|name| Review::start(&run, &["--reviewer", name]));
    let rows: Vec<Value> = reviews[0].get("/api/next")["next"].as_array().unwrap().clone();
    const COUNT: usize = 200;
    std::thread::scope(|scope| {
        for review in &reviews {
            let rows = &rows;
            scope.spawn(move || {
                let mut client = review.client();
                for at in 0..COUNT {
                    let after =
                        if at % 3 == 0 { json!("drop") } else { json!({ "label": rows[0]["given"] }) };
                    review.post(&mut client, "/api/decide", &decision(&rows[at % rows.len()]["row"], after));
                }
            });
        }
    });
    let record = fs::read_to_string(run.join("review.jsonl")).unwrap();
    let lines: Vec<Value> = record.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| lines.iter().filter(|line| line["reviewer"] == name).count();
    assert_eq!((of("ann"), of("bob")), (COUNT, COUNT));
    assert!(lines.iter().zip(1..).all(|(line, step)| line["step"] == json!(step)), "steps in one order");
    // What another process decided is known without a restart.
    let agreement = reviews[0].get("/api/figures")["agreement"][0].clone();
    assert_eq!((&agreement["reviewers"], &agreement["rows"]), (&json!(["ann", "bob"]), &json!(rows.len())));
    assert_eq!(agreement["alike"], agreement["rows"]);
}

#[test]
fn rows_of_an_audit_in_parts_are_reviewed_most_suspicious_first_and_exported() {
    let here = folder("parts");
    let mut chance = Chance(11);
    let (mut columns, mut labels) = ([Vec::new(), Vec::new(), Vec::new()], Vec::new());
    for row in 0..3000 {
        let class = row % 3;
        columns.iter_mut().enumerate().for_each(|(at, column)| {
            column.push(if at == class { 3.0 } else { 0.0 } + chance.next() + chance.next());
        });
        labels
            .push(["=cat", "<b>dog", "cow"][if row % 10 == 4 { (class + 1) % 3 } else { class }].to_owned());
    }
    let (data, run) = (here.join("t.parquet"), here.join("run"));
    let schema = "message t { required double tail; required double ear; required double horn; required binary label (UTF8); }";
    let [a, b, c] = columns.map(Column::Measures);
    write_parquet(&data, schema, &[a, b, c, Column::Texts(labels)], 4);
    let said = fine(&["audit", text(&data), "--memory", "64MiB", "--out", text(&run)]);
    assert!(said.contains(&format!("next       negscale review {}", text(&run))), "{said}");
    let review = Review::start(&run, &["--blind", "0"]);
    let mut client = review.client();
    let mut state = review.get("/api/next");
    assert!(state["rows"].as_u64().unwrap() > 100, "{state}");
    let scores: Vec<f64> =
        (0..4).map(|at| state["next"][at]["evidence"]["score"].as_f64().unwrap()).collect();
    assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]), "{scores:?}");
    let first = state["next"][0].clone();
    let names: Vec<&str> = (0..3).map(|at| first["columns"][at][0].as_str().unwrap()).collect();
    assert_eq!(names, ["tail", "ear", "horn"]);
    for _ in 0..20 {
        let next = state["next"][0].clone();
        state = review.post(
            &mut client,
            "/api/decide",
            &decision(&next["row"], json!({ "label": next["suggested"] })),
        );
    }
    drop(review);
    assert!(fine(&["review", "export", text(&run)]).starts_with("20 labels changed"));
    let corrected = run.join("review/corrected.csv");
    let rows: Vec<csv::StringRecord> =
        csv::Reader::from_path(&corrected).unwrap().records().map(|row| row.unwrap()).collect();
    let row = &rows[first["row"].as_u64().unwrap() as usize];
    assert_eq!((rows.len(), &row[5]), (3000, "changed"));
    fine(&[
        "audit",
        text(&data),
        "--labels",
        text(&corrected),
        "--memory",
        "64MiB",
        "--out",
        text(&here.join("again")),
    ]);
}

#[test]
fn ten_thousand_decisions_outlive_a_kill() {
    let here = folder("kill");
    let run = audited(&here);
    let mut review = Review::start(&run, &[]);
    let mut client = review.client();
    let next = review.get("/api/next")["next"].clone();
    let rows: Vec<&Value> = next.as_array().unwrap().iter().map(|sample| &sample["row"]).collect();
    let after =
        |at: usize| [json!("drop"), json!("unsure"), json!({ "label": next[0]["given"] })][at % 3].clone();
    const COUNT: usize = 10_000;
    for at in 0..COUNT {
        review.post(&mut client, "/api/decide", &decision(rows[at % rows.len()], after(at)));
    }
    let headers = format!("{}Content-Type: application/json\r\n", review.known());
    client.send("POST", "/api/decide", &headers, &decision(rows[0], json!("drop")).to_string());
    review.child.kill().unwrap();
    review.child.wait().unwrap();
    let record = fs::read_to_string(run.join("review.jsonl")).unwrap();
    let lines: Vec<Value> =
        record.lines().skip(1).take(COUNT).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), COUNT);
    for (at, line) in lines.iter().enumerate() {
        assert_eq!(
            (&line["row"], &line["after"], &line["step"]),
            (rows[at % rows.len()], &after(at), &json!(at + 1))
        );
    }
    let review = Review::start(&run, &[]);
    assert_eq!(review.get("/api/next")["decided"], json!(rows.len()));
}

#[test]
fn what_cannot_be_reviewed_is_told() {
    let here = folder("refused");
    let error = fails(&["review", text(&here)]);
    assert!(
        error.contains("not the folder of a finished audit") && error.contains("negscale audit"),
        "{error}"
    );
    fs::write(here.join("audit.safetensors"), "{}").unwrap();
    let error = fails(&["review", text(&here)]);
    assert!(
        error.contains("audit in parts that is not finished") && error.contains("audit merge"),
        "{error}"
    );
    let run = audited(&here);
    let error = fails(&["review", "export", text(&run)]);
    assert!(error.contains("nothing is decided"), "{error}");
    let error = fails(&["review", text(&run), "--no-open", "--blind", "0.9"]);
    assert!(error.contains("--blind 0.9"), "{error}");
    let mut table = fs::read_to_string(here.join("t.csv")).unwrap();
    table += "more,1,2,3,=cmd|x\n";
    fs::write(here.join("t.csv"), table).unwrap();
    let error = fails(&["review", text(&run), "--no-open"]);
    assert!(error.contains("301 rows now") && error.contains("300"), "{error}");
}
