// Whose bucket it is: the object PREFIX/siltfs with the UUID of the store that owns the prefix, and
// the id of a copy of a store as a writer of the log.
//
// Thread-safety: any thread. Errors: those of the ObjectStore and of Env.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/object/object_store.h"
#include "store/segment/store_uuid.h"

namespace siltfs {

// The key of the owner's object.
inline constexpr const char* kBucketOwnerKey = "siltfs";
// What the keys of objects begin with that a claim makes and removes to test the service.
inline constexpr std::string_view kBucketProbePrefix = "siltfs-probe";

// The store that owns the prefix. kNotFound; kCorruption if the object does not name a store.
Result<StoreUuid> ReadBucketOwner(ObjectStore& objects);
// kNotFound if no store owns the prefix, kInvalidArgument if another one does.
Status CheckBucketOwner(ObjectStore& objects, const StoreUuid& uuid);

// Claims the prefix for a store. kAlreadyExists if an object has the prefix, except for probes that
// a killed claim has left; kNotFound if there is no such bucket, kUnsupported if the service
// ignores conditions. Nothing was changed then. After kIoError the prefix may be claimed if the
// bucket does not answer any more; the message says so.
Status ClaimBucket(ObjectStore& objects, const StoreUuid& uuid);
// Gives the prefix back, after a mkfs that failed.
Status ReleaseBucket(ObjectStore& objects);

// kAlreadyExists if a store owns a prefix that contains the prefix of `address`: its keys could
// then collide with those of a store there. (ClaimBucket finds stores within the prefix.) `open`
// opens the objects of another address. Prefixes that the credentials do not permit to read are
// passed over.
Status CheckNoOuterStore(
    const std::string& address,
    const std::function<Result<std::unique_ptr<ObjectStore>>(const std::string& address)>& open);

// The id of this copy of the store. kNotFound if it never was a writer of the log.
Result<std::array<uint8_t, 16>> ReadBucketWriter(Env& env, const std::string& store);
// The id of this copy of the store as a writer of the log; made and kept durably at the first call.
// A copy that is restored from the bucket gets another one.
Result<std::array<uint8_t, 16>> BucketWriterOf(Env& env, const std::string& store);

}  // namespace siltfs
