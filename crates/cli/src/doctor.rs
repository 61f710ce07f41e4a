//! `countersink doctor`.
