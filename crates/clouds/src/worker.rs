//! A thread on which a cloud's connections are served, for callers that wait.

use counterfoil_disperse::Failure;
use tokio::runtime::{Builder, Runtime};

/// One thread. Whatever runs there ends when this is dropped.
pub(crate) struct Worker(Option<Runtime>);

impl Worker {
    /// # Errors
    /// There can be no thread, for people.
    pub fn new(url: &str) -> Result<Self, String> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| format!("cloud at {url}: no thread for its connections: {error}"))?;
        Ok(Self(Some(runtime)))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("the thread lives as long as its cloud")
    }

    /// Waits for something that may refer to what the caller holds.
    pub fn wait<T>(&self, body: impl Future<Output = T>) -> T {
        self.runtime().block_on(body)
    }

    /// Waits for something that a library of others does with what a server said. They check that less than we do: should one give up
    /// by a panic, that is an answer that makes no sense, and nothing of ours has been left half done.
    pub fn contained<T: Send + 'static>(
        &self,
        body: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let runtime = self.runtime();
        match runtime.block_on(runtime.spawn(body)) {
            Ok(done) => done,
            Err(_) => Err(Failure::Malformed("the library that reads it gave up".into())),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Wherever it is dropped, nobody waits for servers then.
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

#[cfg(test)]
mod tests {
    use super::Worker;
    use counterfoil_disperse::Failure;

    #[test]
    fn a_library_that_gives_up_is_an_answer_that_is_none() {
        let worker = Worker::new("x").expect("a thread");
        let told = worker.contained::<()>(async { panic!("a name that does not begin as it should") });
        assert!(matches!(told, Err(Failure::Malformed(_))), "{told:?}");
        assert_eq!(worker.contained(async { Ok(1) }), Ok(1));
    }
}
