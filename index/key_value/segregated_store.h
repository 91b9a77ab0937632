// Segregated stores (SILT, section 4, "Variable-Length Key-Values"): several key-value stores with
// slots of different sizes, each for what just fits its slots. So neither are small items in large
// slots nor do those of medium size take a second read. What fits no slot goes into the store with
// the smallest ones, and most of it into that one's value log.
//
// "SILT can choose the best instance for a new key and return an opaque key containing the instance
// ID to the application": Put says in which instance it is, and whoever asks for it must say so
// again. A key that is put into another instance is another item there; to replace one whose size
// has changed, delete it where it was after the new one is flushed.
//
// Thread-safety, errors, durability: key_value_store.h. Each instance is flushed for itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "index/key_value/key_value_store.h"

namespace siltfs {

struct SegregatedOptions {
  std::string directory;  // is there, and empty or such a store's
  bool read_only = false;
  // Of the instances, rising; the same at each opening, though larger ones may be added
  // (kInvalidArgument otherwise). Powers of two, 32 to 2,048.
  std::vector<size_t> slot_sizes = {32, 64, 128, 256, 512, 1024, 2048};
  // Of each instance (key_value_store.h).
  SiltIndexOptions index;
  ValueLogOptions values;
};

class SegregatedStore {
 public:
  static Result<std::unique_ptr<SegregatedStore>> Open(Env& env, const SegregatedOptions& options);

  // The number of an instance, rising with the size of its slots.
  using InstanceId = uint8_t;

  Result<InstanceId> Put(ByteView key, ByteView value);
  Result<std::optional<Bytes>> Get(InstanceId instance, ByteView key);
  Status Delete(InstanceId instance, ByteView key);
  Status Flush();
  Result<ReclaimResult> Reclaim(const ReclaimOptions& options);
  Status Close();

  // Where Put would put it.
  InstanceId InstanceFor(size_t key_size, size_t value_size) const;
  size_t instance_count() const { return instances_.size(); }
  // id < instance_count().
  KeyValueStore& instance(InstanceId id) { return *instances_[id]; }
  // Of all instances together.
  KeyValueStats stats() const;

 private:
  explicit SegregatedStore(std::vector<std::unique_ptr<KeyValueStore>> instances)
      : instances_(std::move(instances)) {}
  Result<KeyValueStore*> Instance(InstanceId id);

  const std::vector<std::unique_ptr<KeyValueStore>> instances_;
};

}  // namespace siltfs
