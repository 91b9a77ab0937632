// The EntryStore of MemoryFileSystem. It refuses every call: no test compares imports with this
// file system.
//
// Thread-safety: every call from any thread.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "fs/interface/entry_store.h"

namespace siltfs::testing {

class MemoryEntries final : public EntryStore {
 public:
  std::vector<Result<PutOutcome>> Put(std::span<const EntryImage> images) override {
    return std::vector<Result<PutOutcome>>(images.size(), Result<PutOutcome>(Refusal()));
  }
  Result<PutOutcome> Offer(const EntryImage& /*image*/, InodeNumber /*reference*/,
                           bool /*probably_new*/) override {
    return Refusal();
  }
  Result<PutOutcome> Place(InodeNumber /*temporary*/, const EntryImage& /*image*/) override {
    return Refusal();
  }
  Result<PutOutcome> Link(InodeNumber /*inode*/, InodeNumber /*parent*/,
                          std::string_view /*name*/) override {
    return Refusal();
  }
  Result<bool> SetDirectory(InodeNumber /*directory*/, const EntryImage& /*image*/) override {
    return Refusal();
  }
  bool MayBeCached(InodeNumber /*inode*/) const override { return true; }

 private:
  static Status Refusal() { return {StatusCode::kUnsupported, "has no imports"}; }
};

}  // namespace siltfs::testing
