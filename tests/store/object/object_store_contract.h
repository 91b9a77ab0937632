// The promises of ObjectStore (store/object/object_store.h) as checks that run on any
// implementation:
//
//   TEST_CASE("MemoryObjectStore keeps the contract of object stores") {
//     for (const ObjectStoreCheck& check : ObjectStoreContract()) {
//       DYNAMIC_SECTION(check.name) {
//         MemoryObjectStore store;
//         check.run(store);
//       }
//     }
//   }
//
// Each check needs a store of its own without objects. The checks use keys that IsObjectKey allows,
// never one key as a directory of another, and objects of at most 3 MiB.
#pragma once

#include <span>
#include <string>

#include "store/base/bytes.h"
#include "store/env/env.h"
#include "store/object/object_store.h"

namespace siltfs::testing {

struct ObjectStoreCheck {
  const char* name;
  void (*run)(ObjectStore& store);
};

std::span<const ObjectStoreCheck> ObjectStoreContract();

// A file with these bytes, for PutFile.
class BytesFile : public ReadableFile {
 public:
  explicit BytesFile(Bytes bytes, std::string path = "a file of a test")
      : bytes_(std::move(bytes)), path_(std::move(path)) {}

  const std::string& path() const override { return path_; }
  Result<size_t> Read(uint64_t offset, MutableByteView out) const override;
  Result<uint64_t> Size() const override { return bytes_.size(); }

 private:
  const Bytes bytes_;
  const std::string path_;
};

// Pseudo-random bytes.
Bytes BytesOfSeed(uint64_t seed, size_t size);

}  // namespace siltfs::testing
