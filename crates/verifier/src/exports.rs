//! What a page calls. It writes a request into memory that [`reserve`] shows it, calls [`call`], and reads as many bytes as
//! that says from where [`response`] shows it. The names go out as they are, which the compiler counts as unsafe; there is no
//! unsafe block: a page's writes end where its memory does, and whoever can change the page can change the module.
#![allow(unsafe_code)]

use std::cell::RefCell;

use crate::session::Session;

#[derive(Default)]
struct State {
    session: Option<Session>,
    request: Vec<u8>,
    response: Vec<u8>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Room for a request of so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(bytes: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.request = vec![0; bytes];
        state.request.as_mut_ptr()
    })
}

/// Does what the request says, and gives the number of bytes of the response.
#[unsafe(no_mangle)]
pub extern "C" fn call() -> usize {
    STATE.with_borrow_mut(|state| {
        let request = std::mem::take(&mut state.request);
        state.response = crate::call(&mut state.session, &request);
        state.response.len()
    })
}

/// Where the response lies, until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn response() -> *const u8 {
    STATE.with_borrow(|state| state.response.as_ptr())
}
