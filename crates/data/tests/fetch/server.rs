//! A small web server on this computer, with the faults of real ones.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a request is answered.
#[derive(Clone, Copy)]
pub enum Answer {
    /// As it should be, with ranges.
    Right,
    /// As it should be, and the connection breaks after so many bytes.
    BreakAfter(usize),
    /// As it should be, and nothing more comes after so many bytes.
    StallAfter(usize),
    /// The whole, whatever range is asked for.
    NoRanges,
    /// The whole without ranges, and the connection breaks after so many bytes.
    NoRangesBreakAfter(usize),
    /// The whole without saying how long it is.
    Unannounced,
    /// Only a status.
    Status(u16),
}

pub struct Server {
    address: String,
    /// The `Range` header of each request so far.
    pub asked: Arc<Mutex<Vec<Option<String>>>>,
}

impl Server {
    /// Serves `body` under every path; requests get the answers in turn, the last one again and again.
    pub fn start(body: Vec<u8>, answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
        let (answers, log) = (answers.to_vec(), asked.clone());
        // ends with the process
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let range = read_request(&stream);
                let number = {
                    let mut log = log.lock().unwrap();
                    log.push(range.clone());
                    log.len() - 1
                };
                let answer = answers[number.min(answers.len() - 1)];
                // a client that has heard enough closes the connection
                let _ = reply(stream, &body, range.as_deref(), answer);
            }
        });
        Self { address, asked }
    }

    pub fn url(&self, path: &str) -> &'static str {
        format!("http://{}/{path}", self.address).leak()
    }

    pub fn asked(&self) -> Vec<Option<String>> {
        self.asked.lock().unwrap().clone()
    }
}

fn read_request(stream: &TcpStream) -> Option<String> {
    let mut range = None;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if line.is_empty() {
            break;
        }
        if let Some((_, value)) = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("range"))
        {
            range = Some(value.trim().to_owned());
        }
    }
    range
}

fn reply(mut stream: TcpStream, body: &[u8], range: Option<&str>, answer: Answer) -> std::io::Result<()> {
    let total = body.len();
    if let Answer::Status(status) = answer {
        return write!(stream, "HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    let knows_ranges = matches!(answer, Answer::Right | Answer::BreakAfter(_) | Answer::StallAfter(_));
    let start: Option<usize> = range
        .filter(|_| knows_ranges)
        .map(|range| range.strip_prefix("bytes=").unwrap().strip_suffix('-').unwrap().parse().unwrap());
    let rest = match start {
        Some(start) if start >= total => {
            return write!(
                stream,
                "HTTP/1.1 416 No\r\nContent-Range: bytes */{total}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
        Some(start) => {
            let last = total - 1;
            write!(stream, "HTTP/1.1 206 Part\r\nContent-Range: bytes {start}-{last}/{total}\r\n")?;
            &body[start..]
        }
        None => {
            write!(stream, "HTTP/1.1 200 Yes\r\n")?;
            body
        }
    };
    if !matches!(answer, Answer::Unannounced) {
        write!(stream, "Content-Length: {}\r\n", rest.len())?;
    }
    write!(stream, "Connection: close\r\n\r\n")?;
    match answer {
        Answer::BreakAfter(n) | Answer::NoRangesBreakAfter(n) => stream.write_all(&rest[..n.min(rest.len())]),
        Answer::StallAfter(n) => {
            stream.write_all(&rest[..n])?;
            stream.flush()?;
            // held open in the background, so that the next request is answered meanwhile
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_secs(60));
                drop(stream);
            });
            Ok(())
        }
        _ => stream.write_all(rest),
    }
}
