//! gmp.
