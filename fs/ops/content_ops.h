// Where the chunks of files lie, and reads of chunks by place (fs/interface/content_source.h).
//
// Thread-safety: every call from any thread. Errors: those of FileSystem::Read. Reads only.
#pragma once

#include "fs/content/file_content.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/content_source.h"

namespace siltfs {

class ContentOps final : public ContentSource {
 public:
  // The arguments must outlive it.
  ContentOps(const StoreContext& store, InodeStore& inodes) : store_(store), inodes_(inodes) {}

  std::unique_ptr<Reader> NewReader() override;
  Status Visit(InodeNumber file, uint64_t offset,
               const std::function<bool(const ContentPiece&)>& visit) override;

 private:
  const StoreContext& store_;
  InodeStore& inodes_;
};

}  // namespace siltfs
