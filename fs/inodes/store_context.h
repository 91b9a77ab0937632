// The parts of an open store that all operations use, and the checks with which a change begins.
//
// Thread-safety: every call from any thread. Ownership: borrows the parts, which must outlive it,
// and owns the quotas. Units: bytes, nanoseconds.
#pragma once

#include <cstdint>
#include <memory>

#include "fs/chunks/chunk_store.h"
#include "fs/inodes/quotas.h"
#include "fs/interface/file_system.h"
#include "fs/meta/metadata_store.h"
#include "store/env/env.h"
#include "store/env/space_reserve.h"

namespace siltfs {

// Approximate bytes of a new name, inode or attribute in metadata.
inline constexpr uint64_t kBytesPerName = 4096;

class StoreContext {
 public:
  // `reserve` is null when read-only. `first_number`: what the file system adds to the numbers of
  // inodes when it shows them; 0 for the live inodes.
  StoreContext(Env& env, const FileSystemOptions& options, ChunkStore& chunks,
               MetadataStore& metadata, SpaceReserve* reserve, InodeNumber first_number = 0)
      : env_(env),
        options_(options),
        chunks_(chunks),
        metadata_(metadata),
        reserve_(reserve),
        first_number_(first_number),
        quotas_(std::make_unique<Quotas>()) {}

  Env& env() const { return env_; }
  const FileSystemOptions& options() const { return options_; }
  ChunkStore& chunks() const { return chunks_; }
  MetadataStore& metadata() const { return metadata_; }
  SpaceReserve* reserve() const { return reserve_; }
  // The quotas of the live files; empty for the files of a snapshot.
  Quotas& quotas() const { return *quotas_; }

  // The number under which users know this inode. No live inode and no inode of a snapshot has the
  // same one.
  InodeNumber Shown(InodeNumber inode) const { return first_number_ + inode; }

  int64_t Now() const { return env_.NowNanoseconds(); }
  // Returns kReadOnly if the store is mounted read-only. If a failure has made the chunk store
  // read-only, returns this failure.
  Status CheckWritable() const;
  // Call it before a change that takes this many bytes of the disk. kNoSpace if the remaining space
  // is needed for deletions.
  Status CheckRoom(uint64_t bytes) const {
    return reserve_ ? reserve_->CheckRoom(bytes) : Status::Ok();
  }
  // Call it without a lock before a change that brings new content. While the place of sealed
  // segments is full, it waits for room; kNoSpace after FileSystemOptions::segment_patience.
  Status WaitForSegmentRoom() const {
    return chunks_.WaitForSegmentRoom(options_.segment_patience);
  }
  // The space of the disk of the store's directory, which metadata and the index need.
  Result<SpaceInfo> GetSpace() const;
  // The space for the contents of files: that of the disk, or of another place of segments
  // (FileSystemOptions::capacity_bytes).
  Result<SpaceInfo> GetContentSpace() const;
  // The space for an inode that counts against this quota.
  Result<SpaceInfo> GetContentSpace(QuotaNumber quota) const;
  bool NearlyFull() const { return reserve_ && reserve_->nearly_full(); }

 private:
  Env& env_;
  const FileSystemOptions& options_;
  ChunkStore& chunks_;
  MetadataStore& metadata_;
  SpaceReserve* const reserve_;
  const InodeNumber first_number_;
  const std::unique_ptr<Quotas> quotas_;
};

}  // namespace siltfs
