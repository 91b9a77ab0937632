// A key-value store whose writes are shipped to a bucket.
//
// Each Write gets the next sequence, which the Write itself stores (fs/records/position_record.h).
// A Write is locally durable when it returns, and then waits for the bucket in memory (shipper.h).
// With ShippingOptions::wait_for_bucket, AwaitShipped returns only when the bucket has all writes
// up to its call: those that wait together share a log object. When another writer has taken over,
// writes and AwaitShipped fail with kReadOnly.
//
// A load is not shipped record by record: a checkpoint brings it to the bucket.
//
// Thread-safety, errors, durability: kv_store.h. CloseCleanly ships what waits, for at most
// ShippingOptions::close_timeout. If the bucket still lacks something, the store is closed
// nevertheless. With ShippingOptions::wait_for_bucket, or if another writer has taken over, the
// call then returns the reason, and must not be repeated.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/shipping/shipper.h"

namespace siltfs {

// Begins an epoch of the shipper, calls `begun` with the store, starts the shipper, and makes the
// first commit of the epoch with the mutations that `begun` has returned. `shipper` and `data`,
// which may be null, must outlive the store, which stops the shipper. Does not wait until the
// bucket has what it lacks; AwaitShipped waits for that, too. Errors: those of Shipper::Begin, of
// `begun` (which may be empty), and of the store.
Result<std::unique_ptr<KvStore>> NewShippedKvStore(
    std::unique_ptr<KvStore> base, Shipper& shipper, ShippedData* data, ShippingOptions options,
    const std::function<Result<std::vector<Mutation>>(const KvStore&)>& begun = {});

}  // namespace siltfs
