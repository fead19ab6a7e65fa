//! The page, on this machine only.
//!
//! One thread waits for requests; what reads or writes files runs beside it. Decisions are on the disk before they are answered. What is
//! asked for is bounded: head and body by size and time, connections by number; the whole list is never sent.

mod answer;
mod guard;
mod routes;
mod shown;

pub use routes::App;

use answer::{Answer, refuse};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Within this time a request has to arrive, and an idle connection to ask again.
const PATIENCE: Duration = Duration::from_secs(20);
/// No connection lasts longer.
const LONGEST: Duration = Duration::from_secs(3600);
/// Bytes of a body.
const BODY: usize = 64 << 10;
/// Bytes of a head.
const HEAD: usize = 16 << 10;
/// Open connections.
const CONNECTIONS: usize = 64;
/// Threads that read and write files.
const WORKERS: usize = 4;
/// So often somebody looks whether to stop.
const TICK: Duration = Duration::from_millis(50);
/// Decisions that are being written at the end have this long.
const END: Duration = Duration::from_secs(5);

/// Answers requests until it is told to stop.
///
/// # Errors
/// Those of the system.
pub fn serve(listener: TcpListener, app: App, is_stopped: impl Fn() -> bool) -> io::Result<()> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_io().enable_time().max_blocking_threads(WORKERS).build()?;
    let done = runtime.block_on(accept(listener, Arc::new(app), is_stopped));
    runtime.shutdown_timeout(END);
    done
}

async fn accept(listener: TcpListener, app: Arc<App>, is_stopped: impl Fn() -> bool) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let open = Arc::new(());
    while !is_stopped() {
        match timeout(TICK, listener.accept()).await {
            Ok(Ok((stream, _))) if Arc::strong_count(&open) <= CONNECTIONS => {
                let (app, open) = (app.clone(), open.clone());
                tokio::spawn(async move {
                    drop(timeout(LONGEST, talk(stream, app)).await);
                    drop(open);
                });
            }
            Ok(Ok(_)) | Err(_) => {}
            // As where too many files are open: that passes.
            Ok(Err(_)) => tokio::time::sleep(TICK).await,
        }
    }
    Ok(())
}

async fn talk(stream: TcpStream, app: Arc<App>) {
    drop(stream.set_nodelay(true));
    let service = service_fn(move |request| {
        let app = app.clone();
        async move { Ok::<_, Infallible>(respond(request, app).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD);
    // Whoever breaks off has nobody to tell.
    drop(builder.serve_connection(TokioIo::new(stream), service).await);
}

async fn respond(request: Request<Incoming>, app: Arc<App>) -> Answer {
    let (head, body) = request.into_parts();
    let entry = match app.guard.check(&head.method, &head.uri, &head.headers) {
        Ok(entry) => entry,
        Err((status, words)) => return refuse(status, words),
    };
    let body = match timeout(PATIENCE, Limited::new(body, BODY).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return refuse(StatusCode::PAYLOAD_TOO_LARGE, "The request is too long or broke off."),
        Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "The request did not arrive in time."),
    };
    let answered =
        tokio::task::spawn_blocking(move || app.answer(entry, &head.method, &head.uri, &body)).await;
    answered.unwrap_or_else(|_| {
        refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            "An error inside the program; decisions made so far are safe.",
        )
    })
}
