//! The gRPC service of `tests/tonic.rs`, described here so that nobody needs protoc.

use tonic_build::manual::{Builder, Method, MethodBuilder, Service};

fn method(name: &str, route: &str) -> MethodBuilder {
    Method::builder()
        .name(name)
        .route_name(route)
        .input_type("crate::Number")
        .output_type("crate::Number")
        .codec_path("tonic_prost::ProstCodec")
}

fn main() {
    let calculator = Service::builder()
        .name("Calculator")
        .package("ecosystem")
        .method(method("square", "Square").build())
        .method(method("count", "Count").server_streaming().build())
        .method(method("sum", "Sum").client_streaming().build())
        .method(
            method("running_sum", "RunningSum")
                .client_streaming()
                .server_streaming()
                .build(),
        )
        .method(method("never", "Never").build())
        .build();
    Builder::new().compile(&[calculator]);
    println!("cargo::rerun-if-changed=build.rs");
}
