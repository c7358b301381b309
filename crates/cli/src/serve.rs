//! `haul serve`.

use std::sync::Arc;

use haul_file_store::Store;
use haul_s3_server::{Config, Limits, Server};
use tokio::runtime;
use tokio::sync::oneshot;

use crate::args::ServeArgs;
use crate::credentials;
use crate::opening::{Missing, open};
use crate::ready;
use crate::report::{Exit, Failure, OrFail, Result};
use crate::signals::on_end;

/// Serves until a signal asks to stop.
pub(crate) fn run(args: &ServeArgs) -> Result {
    let config = Config {
        listen: args.listen,
        admin: args.admin,
        credentials: credentials::load(args.credentials.as_deref())?,
        limits: Limits { drain_time_max: args.drain_time, ..Limits::default() },
    };
    let runtime = runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .or_fail(|| "cannot start the threads of the server".to_owned())
        .map_err(|failure| failure.exit(Exit::NotStarted))?;
    let who = match args.listen.port() {
        // Nobody knows yet which one it becomes.
        0 => "haul serve".to_owned(),
        _ => format!("haul serve on http://{}", args.listen),
    };
    let (store, _damage) = open(&args.open, &who, Missing::Make)?;
    let store = Arc::new(store);
    let served = runtime.block_on(serve(config, Arc::clone(&store)));
    // Calls of the store that are still under way end first.
    drop(runtime);
    let closed = match Arc::into_inner(store).map(Store::close) {
        Some(closed) => closed.or_fail(|| "cannot close the store".to_owned()),
        None => Ok(()),
    };
    served.and(closed)
}

async fn serve(config: Config, store: Arc<Store>) -> Result {
    // Caught before anybody can know that it runs.
    let (asked, stop) = oneshot::channel();
    // Nobody hears it when the server is gone already.
    on_end("the requests in flight", move |_signal| asked.send(()).unwrap_or_default())?;
    let server = Server::bind(config, store).await.map_err(|error| {
        Failure::new("cannot start the server").because(error).exit(Exit::NotStarted)
    })?;
    let addresses = server.addresses();
    let (listen, admin) = (addresses.listen, addresses.admin);
    ready::tell(&format!("S3 on http://{listen}, admin on http://{admin}"));
    let stop = async { stop.await.unwrap_or_default() };
    server.run(stop).await.or_fail(|| "the server failed".to_owned())
}
