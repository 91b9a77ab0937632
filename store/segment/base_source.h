// Where the reader of a block gets the bases of its deltas from. fs/ implements it with its index
// and caches; the segment library only calls it.
//
// Thread-safety: any thread may call ReadBase. A caller holds no lock meanwhile. Ownership: the
// source must outlive the calls that use it.
#pragma once

#include <memory>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/segment/base_ref.h"

namespace siltfs {

// The bytes of a base. `owner` keeps them alive, so that a cached block is shared without a copy.
struct BaseBytes {
  std::shared_ptr<const void> owner;
  ByteView bytes;
};

class BaseSource {
 public:
  virtual ~BaseSource() = default;

  // The bytes of the whole chunk with this name, tag and length. Must not inflate a delta: a base
  // is stored whole. kNotFound or kCorruption if there is no such whole chunk, or if all its copies
  // are damaged; kIoError from the device. A result of another length counts as kCorruption.
  virtual Result<BaseBytes> ReadBase(const BaseRef& base) = 0;
};

}  // namespace siltfs
