//! The curve BLS12-381 as far as readers and owners need it.
