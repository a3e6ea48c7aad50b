//! Spans stay with their tasks across awaits, steals and blocking threads.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::Barrier;
use tokio::task::{JoinSet, block_in_place, spawn_blocking, yield_now};
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Instrument, Subscriber, info, info_span, instrument};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// For each event the number it was logged with, and the numbers of its spans from the innermost.
type Log = Arc<Mutex<Vec<(u64, Vec<u64>)>>>;

struct Recorder(Log);

struct Number(u64);

impl Visit for Number {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "number" {
            self.0 = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut number = Number(0);
        attributes.record(&mut number);
        context.span(id).unwrap().extensions_mut().insert(number);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut number = Number(0);
        event.record(&mut number);
        let spans = context.event_scope(event).into_iter().flatten();
        let spans = spans.map(|span| span.extensions().get::<Number>().unwrap().0);
        self.0.lock().unwrap().push((number.0, spans.collect()));
    }
}

#[instrument]
async fn inner(number: u64) {
    for _ in 0..10 {
        yield_now().await;
        info!(number);
    }
    sleep(Duration::from_millis(1)).await;
    info!(number);
    block_in_place(|| info!(number));
    let span = tracing::Span::current();
    spawn_blocking(move || span.in_scope(|| info!(number)))
        .await
        .unwrap();
}

/// Nothing is logged outside its own span, nor inside somebody else's.
#[test]
fn an_event_is_in_the_span_of_its_task() {
    const TASKS: u64 = 100;
    let log = Log::default();
    tracing::subscriber::set_global_default(Registry::default().with(Recorder(log.clone())))
        .unwrap();
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let all = Arc::new(Barrier::new(TASKS as usize));
        let mut tasks = JoinSet::new();
        for number in 1..=TASKS {
            let all = all.clone();
            let task = async move {
                all.wait().await;
                inner(number).await;
                info!(number);
            };
            tasks.spawn(task.instrument(info_span!("outer", number)));
        }
        tasks.join_all().await;
        info!(number = 0_u64);
    });
    let log = log.lock().unwrap();
    let events_of = |number| log.iter().filter(move |event| event.0 == number);
    for number in 1..=TASKS {
        let depths = events_of(number).map(|(_, spans)| spans.len());
        assert!(depths.eq([2; 13].into_iter().chain([1])), "{number}");
        assert!(events_of(number).all(|(_, spans)| spans.iter().all(|&span| span == number)));
    }
    assert!(events_of(0).map(|(_, spans)| spans.len()).eq([0]));
}
