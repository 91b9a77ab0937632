// Answers the requests of one lane of an export: lists entries with their attributes, tells where
// the chunks of files lie, and reads chunks.
//
// Not thread-safe: a lane belongs to one thread. Ownership: borrows its arguments.
#pragma once

#include <memory>

#include "fs/interface/content_source.h"
#include "fs/interface/file_system.h"
#include "fs/transfer/caller_rights.h"
#include "fs/transfer/lane_session.h"

namespace siltfs {

class ExportLane final : public transfer::LaneHandler {
 public:
  ExportLane(FileSystem& file_system, const CallerRights& rights,
             const std::function<bool()>& stopped)
      : file_system_(file_system),
        rights_(rights),
        stopped_(stopped),
        reader_(file_system.contents().NewReader()) {}

  transfer::Answer Handle(const transfer::Request& request, MutableByteView slot) override;

 private:
  Result<transfer::Answer> Dispatch(const transfer::Request& request, MutableByteView slot);
  Result<transfer::Answer> ReadEntries(InodeNumber directory, uint64_t cookie,
                                       MutableByteView slot);
  Result<transfer::Answer> ReadSelf(InodeNumber inode, MutableByteView slot);
  Result<transfer::Answer> Locate(const transfer::Request& request, MutableByteView slot);
  Result<transfer::Answer> ReadChunks(const transfer::Request& request, MutableByteView slot);
  Result<transfer::Answer> ReadFile(InodeNumber file, uint64_t offset, MutableByteView slot);
  // The encoded record of an inode.
  Result<std::string> RecordOf(InodeNumber inode, std::string_view name) const;

  FileSystem& file_system_;
  const CallerRights& rights_;
  const std::function<bool()>& stopped_;
  const std::unique_ptr<ContentSource::Reader> reader_;
};

}  // namespace siltfs
