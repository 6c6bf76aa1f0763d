pub mod client;
pub mod memory;

use std::sync::Arc;

use counterfoil_influx::listener::{Limits, Listener, Settings, Sink};

/// A listener at a free port.
pub fn listen(sink: Arc<dyn Sink>, change: impl FnOnce(&mut Limits)) -> Listener {
    let mut settings = Settings::default();
    settings.quality_fields = vec!["Quality".to_owned()];
    change(&mut settings.limits);
    Listener::bind("127.0.0.1:0".parse().unwrap(), sink, settings).expect("a listener")
}
