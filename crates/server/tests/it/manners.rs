//! Manners of the API that no single route is about: request ids, clients behind proxies, pages of other origins, compression.

mod clients;
mod idempotency;
mod rate_limits;
mod request_ids;
