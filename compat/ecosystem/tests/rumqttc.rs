//! MQTT: rumqttc and a mosquitto.

use std::time::Duration;

use ecosystem::port;
use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Packet, QoS};
use tokio::sync::mpsc;

const MESSAGES: u32 = 200;

fn client(name: &str) -> (AsyncClient, EventLoop) {
    let mut options = MqttOptions::new(name, "127.0.0.1", port("MQTT_PORT"));
    options.set_keep_alive(Duration::from_secs(60));
    // mosquitto takes no more than twenty at a time that are to arrive exactly once.
    options.set_inflight(20);
    AsyncClient::new(options, 10)
}

/// Polls the connection of a client until that disconnects, and passes on what comes in.
fn drive(mut events: EventLoop) -> mpsc::UnboundedReceiver<Packet> {
    let (sender, packets) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok(event) = events.poll().await {
            if let Event::Incoming(packet) = event {
                let _ = sender.send(packet);
            }
        }
    });
    packets
}

async fn deliver(qos: QoS, topic: &str) {
    let (subscriber, events) = client(&format!("subscriber of {topic}"));
    let mut incoming = drive(events);
    subscriber.subscribe(topic, qos).await.unwrap();
    while !matches!(incoming.recv().await.unwrap(), Packet::SubAck(_)) {}

    let (publisher, events) = client(&format!("publisher of {topic}"));
    drive(events);
    for number in 0..MESSAGES {
        publisher
            .publish(topic, qos, false, number.to_string())
            .await
            .unwrap();
    }
    let mut expected = 0..MESSAGES;
    while !expected.is_empty() {
        if let Packet::Publish(publish) = incoming.recv().await.unwrap() {
            assert_eq!(publish.payload, expected.next().unwrap().to_string());
        }
    }
    publisher.disconnect().await.unwrap();
    subscriber.disconnect().await.unwrap();
    while incoming.recv().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_arrive_at_least_once() {
    deliver(QoS::AtLeastOnce, "at/least/once").await;
}

#[tokio::test]
async fn messages_arrive_exactly_once() {
    deliver(QoS::ExactlyOnce, "exactly/once").await;
}
