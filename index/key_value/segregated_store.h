// Segregated stores (SILT, section 4, "Variable-Length Key-Values"): several key-value stores with
// slots of different sizes. Each item goes into the store with the smallest slots in which it fits.
// So small items do not waste large slots, and items of medium size need no second read. An item
// that fits no slot goes into the store with the smallest slots; most of its bytes are then in the
// value log.
//
// "SILT can choose the best instance for a new key and return an opaque key containing the instance
// ID to the application": Put returns the instance, and the caller must pass it to Get and Delete.
// The same key in another instance is another item. To replace an item after its size has changed,
// delete it from the old instance after a Flush has made the new item durable.
//
// Thread-safety, errors, durability: key_value_store.h. Each instance is flushed separately.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "index/key_value/key_value_store.h"

namespace siltfs {

struct SegregatedOptions {
  std::string directory;  // must exist, and be empty or hold a SegregatedStore
  bool read_only = false;
  // Slot sizes of the instances, rising: powers of two, 32 to 2,048. They must be the same at each
  // opening, but sizes above the largest may be added (kInvalidArgument otherwise).
  std::vector<size_t> slot_sizes = {32, 64, 128, 256, 512, 1024, 2048};
  // Options of each instance (key_value_store.h).
  SiltIndexOptions index;
  ValueLogOptions values;
};

class SegregatedStore {
 public:
  static Result<std::unique_ptr<SegregatedStore>> Open(Env& env, const SegregatedOptions& options);

  // The number of an instance; rises with slot size.
  using InstanceId = uint8_t;

  Result<InstanceId> Put(ByteView key, ByteView value);
  Result<std::optional<Bytes>> Get(InstanceId instance, ByteView key);
  Status Delete(InstanceId instance, ByteView key);
  Status Flush();
  Result<ReclaimResult> Reclaim(const ReclaimOptions& options);
  Status Close();

  // The instance that Put would choose.
  InstanceId InstanceFor(size_t key_size, size_t value_size) const;
  size_t instance_count() const { return instances_.size(); }
  // id < instance_count().
  KeyValueStore& instance(InstanceId id) { return *instances_[id]; }
  // Summed over all instances.
  KeyValueStats stats() const;

 private:
  explicit SegregatedStore(std::vector<std::unique_ptr<KeyValueStore>> instances)
      : instances_(std::move(instances)) {}
  Result<KeyValueStore*> Instance(InstanceId id);

  const std::vector<std::unique_ptr<KeyValueStore>> instances_;
};

}  // namespace siltfs
