//! The server that `bench` loads. Prints its address; ends when it is killed.

use axum::Json;
use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use serde::Serialize;
use tokio::net::TcpListener;

#[derive(Serialize)]
struct Item {
    id: u64,
    name: String,
}

async fn item(Path(id): Path<u64>) -> Json<Item> {
    let name = format!("item {id}");
    Json(Item { id, name })
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let router = Router::new()
        .route("/", get(async || "hello\n"))
        .route("/items/{id}", get(item));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    axum::serve(listener, router).await
}
