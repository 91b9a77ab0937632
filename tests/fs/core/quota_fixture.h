// A store with quotas, whose usage is counted again from metadata.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "fs/check/check_store.h"
#include "fs/interface/directory_quotas.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {

struct QuotaFixture {
  StoreFixture store;
  FileSystem* fs = &store.Open();

  DirectoryQuotas& quotas() { return *fs->quotas(); }
  void Set(InodeNumber directory, uint64_t bytes, uint64_t files) {
    REQUIRE_OK(quotas().Set(directory, {.bytes = bytes, .files = files}, {}));
  }
  QuotaInfo Of(InodeNumber inode) {
    const auto found = quotas().Of(inode);
    REQUIRE_OK(found);
    REQUIRE(found->has_value());
    return **found;
  }
  bool HasQuota(InodeNumber inode) {
    const auto found = quotas().Of(inode);
    REQUIRE_OK(found);
    return found->has_value();
  }
  // Writes to an open or closed file, and folds it.
  Status TryWrite(InodeNumber file, uint64_t offset, ByteView data) {
    REQUIRE_OK(fs->OpenFile(file, false));
    const Status written = fs->Write(file, offset, data);
    fs->ReleaseFile(file);
    return written;
  }
  InodeNumber File(InodeNumber parent, std::string_view name, size_t bytes) {
    const InodeNumber file = MakeFile(*fs, parent, name);
    if (bytes > 0) REQUIRE_OK(TryWrite(file, 0, RandomBytes(file, bytes)));
    return file;
  }
  Status TryMake(InodeNumber parent, std::string_view name) {
    const auto made = fs->CreateFile(parent, name, 0644, kCaller);
    SILTFS_RETURN_IF_ERROR(made.status());
    fs->ReleaseFile(made->inode);
    fs->Forget(made->inode, 1);
    return Status::Ok();
  }
  // Ends the store in this way, lets fsck count again, and opens the store.
  enum class End : uint8_t { kClose, kCrash };
  void Recount(End end) {
    if (end == End::kClose) {
      store.Close();
    } else {
      store.Crash();
    }
    RequireNoFindings();
    fs = &store.Open();
  }
  void RequireNoFindings() {
    CheckOptions options;
    options.store = store.path();
    options.segments = SealedSegments(store.env());
    std::string findings;
    options.on_finding = [&findings](const Finding& finding) {
      findings += finding.code + ": " + finding.message + "\n";
    };
    const auto checked = CheckStore(store.env(), options);
    REQUIRE_OK(checked);
    REQUIRE(findings == "");
  }
  // Adds the inodes below the directory, and their bytes, as a walk through the tree finds them.
  void AddBelow(InodeNumber directory, std::set<InodeNumber>& found, uint64_t& bytes) {
    for (const std::string& name : ListNames(*fs, directory)) {
      const auto entry = fs->Lookup(directory, name);
      REQUIRE_OK(entry);
      fs->Forget(entry->inode, 1);
      if (!found.insert(entry->inode).second) continue;
      bytes += entry->allocated_bytes;
      if ((entry->mode & 0170000) == 0040000) AddBelow(entry->inode, found, bytes);
    }
  }
};

}  // namespace siltfs::testing
