// The EntryStore and the ContentSource of MemoryFileSystem. They refuse every call: no test
// compares imports and exports with this file system.
//
// Thread-safety: every call from any thread.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "fs/interface/content_source.h"
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

class MemoryContents final : public ContentSource {
 public:
  std::unique_ptr<Reader> NewReader() override { return nullptr; }
  Status Visit(InodeNumber /*file*/, uint64_t /*offset*/,
               const std::function<bool(const ContentPiece&)>& /*visit*/) override {
    return {StatusCode::kUnsupported, "has no exports"};
  }
};

}  // namespace siltfs::testing
